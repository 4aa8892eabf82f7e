/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "facts/real_time.h"

#include "system/clock.h"
#include "system/cpus.h"
#include "system/processes.h"
#include "system/text.h"
#include "system/threads.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MOST = 1024 * 1024, REAL_TIME = 1 << POLICY_FIFO | 1 << POLICY_RR | 1 << POLICY_DEADLINE, SHARE = 100 };

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

	if (policy < 0 || !(REAL_TIME >> (policy &= ~POLICY_RESET_ON_FORK) & 1))
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
	while ((process = processes_next_number(processes))) {
		char path[64];

		if (process == self.pid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task", process);
		DIR *threads = opendir(path);

		while ((thread = processes_next_number(threads)))
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

enum { TEXT_MOST = 65536, PLACE_MOST = 1024, CPUS_ASKED = 1024 };

static const char runtime_name[] = "cpu.rt_runtime_us", period_name[] = "cpu.rt_period_us";

/* Whether a list with commas between has the word cpu. */
static bool has_cpu(const char *list)
{
	for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
		if (!strncmp(at, "cpu", 3) && (!at[3] || at[3] == ','))
			return true;
	return false;
}

/* Where the controller is mounted: "cgroup PLACE cgroup OPTIONS 0 0". */
static const char *find_mount(char *mounts)
{
	char *rest = NULL, *words;

	for (char *line = strtok_r(mounts, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		strtok_r(line, " ", &words);
		const char *place = strtok_r(NULL, " ", &words), *type = strtok_r(NULL, " ", &words);
		const char *options = strtok_r(NULL, " ", &words);

		if (options && !strcmp(type, "cgroup") && has_cpu(options))
			return place;
	}
	return NULL;
}

/* The own group: "NUMBER:CONTROLLERS:PATH". */
static char *find_group(char *groups)
{
	char *rest = NULL;

	for (char *line = strtok_r(groups, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		*path = '\0';
		if (has_cpu(list + 1))
			return path + 1;
	}
	return NULL;
}

static bool put_budget(struct bytes *lines, const char *folder)
{
	char path[PLACE_MOST + 96], runtime[32], period[32];

	snprintf(path, sizeof(path), "%s/%s", folder, runtime_name);
	if (text_read_line(path, runtime, sizeof(runtime)) < 0)
		return false;
	snprintf(path, sizeof(path), "%s/%s", folder, period_name);
	if (text_read_line(path, period, sizeof(period)) < 0)
		snprintf(period, sizeof(period), "-");
	snprintf(path, sizeof(path), "%s %s %s\n", folder, runtime, period);
	put_bytes(lines, path, strlen(path));
	return true;
}

int rt_budget_groups(char *mounts, char *groups, struct bytes *lines)
{
	const char *place = find_mount(mounts);
	char *group = find_group(groups), *end;
	char folder[PLACE_MOST];
	bool found = false;

	if (!place || !group)
		return -ENOENT;
	for (;;) {
		snprintf(folder, sizeof(folder), "%s%s", place, strcmp(group, "/") ? group : "");
		found |= put_budget(lines, folder);
		end = strrchr(group, '/');
		if (!end || !end[1])
			return found ? 0 : -ENOENT;
		end[end == group] = '\0'; /* "/a" is in "/" */
	}
}

int rt_budget_own(struct bytes *lines)
{
	char *mounts = calloc(2, TEXT_MOST);

	if (!mounts)
		return -ENOMEM;
	char *groups = mounts + TEXT_MOST;
	bool read = text_read_file("/proc/self/mounts", mounts, TEXT_MOST - 1) > 0 &&
		    text_read_file("/proc/self/cgroup", groups, TEXT_MOST - 1) > 0;
	int err = read ? rt_budget_groups(mounts, groups, lines) : -ENOENT;

	free(mounts);
	return err;
}

int rt_budget_fair_server(struct bytes *lines)
{
	int err = -ENOENT;

	for (int cpu = 0; cpu < CPUS_ASKED; cpu++) {
		char path[128], runtime[32], period[32], line[128];

		snprintf(path, sizeof(path), "/sys/kernel/debug/sched/fair_server/cpu%d/runtime", cpu);
		if (text_read_line(path, runtime, sizeof(runtime)) < 0)
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/debug/sched/fair_server/cpu%d/period", cpu);
		if (text_read_line(path, period, sizeof(period)) < 0)
			continue;
		int n = snprintf(line, sizeof(line), "cpu%d %s %s\n", cpu, runtime, period);

		put_bytes(lines, line, (size_t)n);
		err = 0;
	}
	return err;
}

void rt_budget_explain(char *why, size_t room)
{
	struct bytes lines = { 0 };
	char *rest = NULL;

	why[0] = '\0';
	int err = rt_budget_own(&lines);

	put_u8(&lines, 0);
	if (!err && !lines.failed) {
		char *folder = strtok_r((char *)lines.data, " ", &rest), *runtime = strtok_r(NULL, " ", &rest);

		if (runtime && !strcmp(runtime, "0"))
			snprintf(why, room, "the control group has no budget for real-time threads: %s/%s is 0", folder, runtime_name);
	}
	bytes_free(&lines);
}
