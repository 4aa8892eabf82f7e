// SPDX-License-Identifier: GPL-2.0-only
/*
 * check figures MODE PERIOD_US COUNT: one line with what was measured, of each stage min, mean and max in ns:
 *   task irq 571 951 3984 task 3471 3888 7010 missed 0 lost 0 rests 0 reversed 0
 */
#include "check.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

struct stage {
	int64_t min, max, sum;
	uint64_t count;
};

static void add(struct stage *stage, int64_t value)
{
	if (value == RTPROOF_NONE)
		return;
	stage->min = stage->count && stage->min < value ? stage->min : value;
	stage->max = stage->count && stage->max > value ? stage->max : value;
	stage->sum += value;
	stage->count++;
}

static void show(const char *name, const struct stage *stage)
{
	if (stage->count)
		printf(" %s %" PRId64 " %" PRId64 " %" PRId64, name, stage->min, stage->sum / (int64_t)stage->count, stage->max);
}

static int mode_of(const char *name)
{
	static const char *const names[] = { "timer", "task", "user", "loop" };

	for (int i = 0; i < 4; i++)
		if (!strcmp(name, names[i]))
			return i;
	return -1;
}

/* t2 of the mode USER is taken here, directly behind read(). How many events have it before t1. */
static long measure(int device, const struct rtproof_start *start, long count, struct stage *irq, struct stage *task)
{
	struct rtproof_event event;
	long reversed = 0;

	for (long i = 0; i < count && read_all(device, &event, 1) == 1; i++) {
		uint64_t now = now_ns();

		if (start->mode == RTPROOF_USER)
			event.task_ns = (int64_t)(now - start->first_due_ns - event.index * start->period_ns);
		add(irq, event.irq_ns);
		add(task, event.task_ns);
		reversed += event.task_ns != RTPROOF_NONE && event.irq_ns > event.task_ns;
	}
	return reversed;
}

static int run(const struct rtproof_start *start, long count, const char *name)
{
	struct stage irq = { 0 }, task = { 0 };
	struct rtproof_summary summary;
	int device;
	long reversed;

	if (start->mode == RTPROOF_USER)
		become(SCHED_FIFO, 90);
	device = started(start);
	reversed = measure(device, start, count, &irq, &task);
	ioctl(device, RTPROOF_STOP);
	become(SCHED_OTHER, 0);
	summary = summary_of(device, start->mode == RTPROOF_LOOP ? RTPROOF_STAGE_TASK : RTPROOF_STAGE_IRQ, NULL);
	printf("%s", name);
	show("irq", &irq);
	show("task", &task);
	printf(" missed %llu lost %llu rests %llu reversed %ld\n", summary.missed, summary.lost, summary.rests, reversed);
	close(device);
	return 0;
}

int figures(int count, char **arguments)
{
	struct rtproof_start start;

	if (count != 3 || mode_of(arguments[0]) < 0) {
		fputs("check figures timer|task|user|loop PERIOD_US COUNT\n", stderr);
		return 2;
	}
	mlockall(MCL_CURRENT | MCL_FUTURE);
	start = usual((uint32_t)mode_of(arguments[0]));
	start.period_ns = strtoull(arguments[1], NULL, 10) * 1000;
	/* On a grid of 10 ms, where rtproof_irqoff has its sections. */
	start.first_due_ns = (start.first_due_ns / (10 * MS) + 2) * 10 * MS;
	if (start.mode != RTPROOF_USER) {
		start.batch = 64;
		start.batch_ns = 100 * MS;
	}
	return run(&start, strtol(arguments[2], NULL, 10), arguments[0]);
}
