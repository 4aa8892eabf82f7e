/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/tasks.h"

#include "collect/lines.h"
#include "system/cpus.h"
#include "system/processes.h"
#include "system/text.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { TASKS_MOST = 16384 };

/* As `ps -c` calls the policies, by their kernel numbers. */
static const char *class_name(int policy)
{
	static const char *const classes[] = { "TS", "FF", "RR", "B", "ISO", "IDL", "DLN" };

	return (unsigned int)policy < sizeof(classes) / sizeof(*classes) ? classes[policy] : "?";
}

static void put_slack(struct bytes *text, int thread)
{
	char path[64], slack[32];

	/* The folder of a thread is there, although that of all processes does not list it. */
	snprintf(path, sizeof(path), "/proc/%d/timerslack_ns", thread);
	put_format(text, "%s ", text_read_line(path, slack, sizeof(slack)) ? "-" : slack);
}

static void put_thread(struct bytes *text, int process, int thread, bool slack)
{
	char path[64], priority[16] = "-", nice[16] = "-", allowed[CPUS_TEXT] = "-";
	struct taskstat stat;
	struct cpus cpus;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", process, thread);
	if (taskstat_read(path, &stat))
		return; /* it has ended */
	if (stat.priority)
		snprintf(priority, sizeof(priority), "%d", stat.priority);
	else
		snprintf(nice, sizeof(nice), "%d", stat.nice);
	if (!cpus_get_affinity(thread, &cpus))
		cpus_format(&cpus, allowed, sizeof(allowed));
	put_format(text, "%d %d %d %s %s %s %d %s 0x%08lx ", process, thread, stat.parent, class_name(stat.policy), priority, nice,
		   stat.cpu, allowed, (unsigned long)stat.flags);
	if (slack)
		put_slack(text, thread);
	put_format(text, stat.of_kernel ? "[%s]\n" : "%s\n", stat.name);
}

/* Calls put for each thread of a process, at most so many. How many there were, or -errno. */
static int each_thread(struct bytes *text, int process, int most, void (*put)(struct bytes *text, int process, int thread))
{
	char path[64];
	int thread, n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", process);
	DIR *threads = opendir(path);

	if (!threads)
		return -errno;
	while (n < most && (thread = processes_next_number(threads))) {
		put(text, process, thread);
		n++;
	}
	closedir(threads);
	return n;
}

static void put_plain(struct bytes *text, int process, int thread)
{
	put_thread(text, process, thread, false);
}

static void put_with_slack(struct bytes *text, int process, int thread)
{
	put_thread(text, process, thread, true);
}

static void put_faults(struct bytes *text, int process, int thread)
{
	char path[64];
	struct taskstat stat;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", process, thread);
	if (!taskstat_read(path, &stat))
		put_format(text, "%d %ld %ld\n", thread, stat.minor_faults, stat.major_faults);
}

int collect_tasks(struct bytes *text, int pid)
{
	DIR *processes = opendir("/proc");
	int process, left = TASKS_MOST;

	(void)pid;
	if (!processes)
		return -errno;
	put_format(text, "PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS COMM\n");
	size_t head = text->length;

	while (left > 0 && (process = processes_next_number(processes))) {
		int n = each_thread(text, process, left, put_plain);

		left -= n > 0 ? n : 0;
	}
	closedir(processes);
	if (text->length == head)
		return -ENOENT; /* no file system of processes is mounted there */
	return left > 0 ? 0 : TEXT_IS_CUT;
}

static int of_process(struct bytes *text, int pid, void (*put)(struct bytes *text, int process, int thread))
{
	int n = each_thread(text, pid, TASKS_MOST, put);

	return n < 0 ? n : n < TASKS_MOST ? 0 : TEXT_IS_CUT;
}

int collect_process_threads(struct bytes *text, int pid)
{
	put_format(text, "PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS SLACK COMM\n");
	return of_process(text, pid, put_with_slack);
}

int collect_process_faults(struct bytes *text, int pid)
{
	return of_process(text, pid, put_faults);
}
