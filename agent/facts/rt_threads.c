/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "facts/rt_threads.h"

#include "facts/machine.h"
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
