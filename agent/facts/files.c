/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "facts/files.h"

#include "facts/machine.h"
#include "facts/parts.h"
#include "measure/run.h"
#include "system/clock.h"
#include "system/cpus.h"
#include "system/processes.h"
#include "system/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVL_MOST = 64 };

static const char *const files_at_start[] = {
	"/proc/version",
	"/proc/cmdline",
	"/proc/cpuinfo",
	"/proc/meminfo",
	"/proc/modules",
	"/proc/mounts",
	"/proc/sys/kernel/sched_rt_period_us",
	"/proc/sys/kernel/printk",
	"/proc/sys/kernel/osrelease",
	"/proc/sys/vm/overcommit_memory",
	"/proc/timer_list",
	"/proc/sys/kernel/tainted",
	"/proc/sys/vm/overcommit_ratio",
	"/proc/xenomai", /* a folder, if it is there: EISDIR */
	"/proc/xenomai/version",
	"/proc/ipipe/version",
	"/proc/rtai",
	"/sys/class/evl",
	"/proc/fb",
	"/sys/class/drm/version",
	"/proc/device-tree/model",
	"/sys/class/dmi/id/sys_vendor",
	"/sys/class/dmi/id/product_name",
	"/sys/hypervisor/type",
	"/sys/kernel/security/lockdown",
	"/sys/kernel/realtime",
	"/sys/devices/system/cpu/isolated",
	"/sys/devices/system/cpu/nohz_full",
	"/sys/devices/system/cpu/online",
	"/sys/devices/system/cpu/smt/active",
	"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
	"/sys/devices/system/cpu/cpuidle/current_driver",
	"/sys/devices/system/clocksource/clocksource0/available_clocksource",
	NULL,
};

/* What may change while measuring is read at both ends. */
static const char *const files_at_both_ends[] = {
	"/proc/stat",
	"/proc/interrupts",
	"/proc/softirqs",
	"/proc/loadavg",
	"/proc/vmstat",
	"/proc/xenomai/stat", /* mode switches, version 2 and 3 */
	"/proc/xenomai/sched/stat",
	"/proc/xenomai/sched", /* threads and priorities, version 2; a folder in version 3 */
	"/proc/xenomai/sched/threads",
	"/proc/sys/kernel/sched_rt_runtime_us",
	"/sys/kernel/debug/sched/preempt",
	"/sys/devices/system/clocksource/clocksource0/current_clocksource",
	NULL,
};

static void write_files(struct run *run, enum moment moment, const char *const *paths)
{
	for (; *paths; paths++)
		record_file(&run->record, run_time_ns(run), moment, *paths);
}

/* Each has how often it left the co-kernel EVL for Linux, and its priority there. */
static void write_evl_threads(struct run *run, enum moment moment)
{
	static const char place[] = "/sys/devices/virtual/thread";
	DIR *folder = opendir(place);
	struct dirent *entry;
	char path[320];

	for (int i = 0; folder && i < EVL_MOST && (entry = readdir(folder)); i++) {
		static const char *const files[] = { "stats", "sched" };

		for (int j = 0; j < 2 && entry->d_name[0] != '.'; j++) {
			snprintf(path, sizeof(path), "%s/%s/%s", place, entry->d_name, files[j]);
			record_file(&run->record, run_time_ns(run), moment, path);
		}
	}
	if (folder)
		closedir(folder);
}

void facts_rt_threads(struct run *run, enum moment moment)
{
	struct bytes lines = { NULL, 0, 0, false };

	if (moment == MOMENT_START) { /* looked at before the warm-up: it takes time */
		lines = run->rt_at_start;
		memset(&run->rt_at_start, 0, sizeof(run->rt_at_start));
	}
	if (moment == MOMENT_DURING)
		rt_threads_each_second(&run->rt_threads, &lines);
	else if (moment == MOMENT_END)
		rt_threads_collect(&run->rt_threads, true, &lines);
	if (moment != MOMENT_DURING || lines.length)
		record_content(&run->record, run_time_ns(run), moment, "rt-threads", 0, (const char *)lines.data, lines.length);
	bytes_free(&lines);
}

static void write_system(struct run *run)
{
	for (int i = 0; i < SYSTEM_PARTS; i++) {
		const struct system_part *part = &run->system[i];

		record_content(&run->record, run_time_ns(run), MOMENT_START, part->path, part->err,
			       (const char *)part->content.data, part->content.length);
	}
}

void facts_files_at_start(struct run *run)
{
	write_system(run);
	write_files(run, MOMENT_START, files_at_start);
	write_files(run, MOMENT_START, files_at_both_ends);
	write_evl_threads(run, MOMENT_START);
	facts_rt_threads(run, MOMENT_START);
}

void facts_files_at_end(struct run *run)
{
	write_files(run, MOMENT_END, files_at_both_ends);
	write_evl_threads(run, MOMENT_END);
	facts_rt_threads(run, MOMENT_END);
}

enum { KEPT_MOST = 1024 * 1024, RESET_ON_FORK = 0x40000000, REAL_TIME = 1 << 1 | 1 << 2 | 1 << 6, SHARE = 100 };

/* True the first time that a thread is seen with this policy and priority. */
static bool is_new(struct rt_threads *told, int thread, int policy, int priority)
{
	const int entry[] = { thread, policy, priority };

	for (size_t at = 0; at < told->seen.length; at += sizeof(entry))
		if (!memcmp(told->seen.data + at, entry, sizeof(entry)))
			return false;
	put_bytes(&told->seen, entry, sizeof(entry));
	return true;
}

static void put_line(struct bytes *lines, int process, int thread, int policy, int priority)
{
	static const char *const classes[] = { [1] = "FF", [2] = "RR", [6] = "DLN" };
	char path[64], ran[32], allowed[CPUS_TEXT], level[16] = "-", line[CPUS_TEXT + 256];
	struct taskstat stat;
	struct cpus cpus;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", process, thread);
	if (taskstat_read(path, &stat) || lines->length > KEPT_MOST)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", process, thread);
	if (text_read_line(path, ran, sizeof(ran)))
		snprintf(ran, sizeof(ran), "-");
	ran[strcspn(ran, " ")] = '\0';
	if (cpus_get_affinity(thread, &cpus))
		snprintf(allowed, sizeof(allowed), "-");
	else
		cpus_format(&cpus, allowed, sizeof(allowed));
	if (priority > 0)
		snprintf(level, sizeof(level), "%d", priority);
	if (!lines->length)
		put_bytes(lines, "PID TID CLS RTPRIO PSR RUN_NS CPUS COMM\n", 40);
	int length = snprintf(line, sizeof(line), stat.of_kernel ? "%d %d %s %s %d %s %s [%s]\n" : "%d %d %s %s %d %s %s %s\n",
			      process, thread, classes[policy], level, stat.cpu, ran, allowed, stat.name);

	put_bytes(lines, line, (size_t)length);
}

static void look_at(struct rt_threads *told, bool all, int process, int thread, struct bytes *lines)
{
	int policy = sys_get_policy(thread), priority;

	if (policy < 0 || !(REAL_TIME >> (policy &= ~RESET_ON_FORK) & 1))
		return;
	priority = sys_get_priority(thread);
	if (is_new(told, thread, policy, priority) || all)
		put_line(lines, process, thread, policy, priority);
}

void rt_threads_collect(struct rt_threads *told, bool all, struct bytes *lines)
{
	DIR *processes = opendir("/proc");
	struct process self = { .pid = getpid() };
	int process, thread;

	processes_self(&self);
	while ((process = system_next_number(processes))) {
		char path[64];

		if (process == self.pid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task", process);
		DIR *threads = opendir(path);

		while ((thread = system_next_number(threads)))
			look_at(told, all, process, thread, lines);
		if (threads)
			closedir(threads);
	}
	if (processes)
		closedir(processes);
}

void rt_threads_each_second(struct rt_threads *told, struct bytes *lines)
{
	int64_t before_ns = clock_now_ns();

	if (before_ns < told->next_ns)
		return;
	rt_threads_collect(told, false, lines);
	int64_t after_ns = clock_now_ns(), rest_ns = SHARE * (after_ns - before_ns);

	told->next_ns = after_ns + (rest_ns > NS_PER_SECOND ? rest_ns : NS_PER_SECOND / 2);
}

void rt_threads_free(struct rt_threads *told)
{
	bytes_free(&told->seen);
}
