// SPDX-License-Identifier: GPL-2.0-only
/*
 * check [NAME...]                                  all checks, or those whose names begin so; exit code 1 if one fails
 * check figures timer|task|user|loop US COUNT      measures and prints min, mean and max of each stage in ns
 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool failed;
static const char *skipped;

void expect(bool holds, const char *what, const char *file, int line)
{
	if (holds)
		return;
	failed = true;
	printf("  %s:%d: not so: %s\n", file, line, what);
}

void skip(const char *why)
{
	skipped = why;
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct rtproof_start usual(uint32_t mode)
{
	bool task = mode == RTPROOF_TASK || mode == RTPROOF_LOOP;
	struct rtproof_start start = {
		.size = sizeof(start), .mode = mode, .batch = 1, .policy = task ? SCHED_FIFO : 0, .priority = task ? 90 : 0,
		.first_due_ns = now_ns() + 3 * MS, .period_ns = MS,
	};

	return start;
}

int started(const struct rtproof_start *start)
{
	int device = open("/dev/rtproof", O_RDWR | O_CLOEXEC);

	if (device < 0 || ioctl(device, RTPROOF_START, start)) {
		perror("/dev/rtproof");
		exit(2);
	}
	return device;
}

int read_all(int device, struct rtproof_event *events, int count)
{
	int have = 0;

	while (have < count) {
		ssize_t bytes = read(device, events + have, (size_t)(count - have) * sizeof(*events));

		if (bytes <= 0)
			break;
		have += (int)((size_t)bytes / sizeof(*events));
	}
	return have;
}

struct rtproof_summary summary_of(int device, uint32_t stage, uint64_t *bins)
{
	struct rtproof_summary summary = { .size = sizeof(summary), .stage = stage, .bins_address = (uintptr_t)bins };

	if (ioctl(device, RTPROOF_SUMMARY, &summary)) {
		perror("RTPROOF_SUMMARY");
		exit(2);
	}
	return summary;
}

int error_of(int result)
{
	return result < 0 ? errno : 0;
}

/* Not by the C library: musl's refuses, because POSIX means processes by it and Linux threads. */
void become(int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	if (syscall(SYS_sched_setscheduler, 0, policy, &param)) {
		perror("sched_setscheduler");
		exit(2);
	}
}

void spin_ns(uint64_t duration_ns)
{
	uint64_t end = now_ns() + duration_ns;

	while (now_ns() < end)
		;
}

/* There the sources are: who spins to hold them up must be on their CPU. */
static void stay_on_first_cpu(void)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first))
		perror("sched_setaffinity");
}

static bool is_wanted(const char *name, char **wanted)
{
	if (!*wanted)
		return true;
	for (; *wanted; wanted++)
		if (!strncmp(name, *wanted, strlen(*wanted)))
			return true;
	return false;
}

static bool run(const struct check *check)
{
	failed = false;
	skipped = NULL;
	check->run();
	printf("%s %s%s%s\n", failed ? "FAIL" : skipped ? "SKIP" : "PASS", check->name, skipped ? ": " : "", skipped ? skipped : "");
	fflush(stdout);
	return !failed;
}

int main(int count, char **arguments)
{
	static const struct check *const all[] = { mode_checks, refusal_checks, reader_checks, life_checks, gpio_checks };
	int bad = 0, made = 0;

	stay_on_first_cpu();
	if (count > 1 && !strcmp(arguments[1], "figures"))
		return figures(count - 2, arguments + 2);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		for (const struct check *check = all[i]; check->name; check++) {
			if (!is_wanted(check->name, arguments + 1))
				continue;
			made++;
			bad += !run(check);
		}
	}
	printf("%d checks, %d failed\n", made, bad);
	return bad || !made;
}
