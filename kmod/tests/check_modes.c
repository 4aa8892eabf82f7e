// SPDX-License-Identifier: GPL-2.0-only
/* What each mode measures. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT 200
#define HELD_UP 40

/* Each event tells how far it is to the next one. */
static bool is_gapless(const struct rtproof_event *events, int count)
{
	for (int i = 0; i + 1 < count; i++)
		if (events[i + 1].index != events[i].index + 1 + events[i].missed + events[i + 1].lost)
			return false;
	return true;
}

static bool all_in_order(const struct rtproof_event *events, int count)
{
	for (int i = 0; i < count; i++)
		if (events[i].irq_ns < 0 || events[i].task_ns < events[i].irq_ns)
			return false;
	return true;
}

static void timer(void)
{
	struct rtproof_start start = usual(RTPROOF_TIMER);
	int device = started(&start);
	struct rtproof_event events[COUNT];

	EXPECT(read_all(device, events, COUNT) == COUNT);
	EXPECT(events[0].index == 0);
	EXPECT(is_gapless(events, COUNT));
	for (int i = 0; i < COUNT; i++) {
		EXPECT(events[i].irq_ns >= 0);
		EXPECT(events[i].task_ns == RTPROOF_NONE);
	}
	close(device);
}

static void task(void)
{
	struct rtproof_start start = usual(RTPROOF_TASK);
	int device = started(&start);
	struct rtproof_event events[COUNT];

	EXPECT(read_all(device, events, COUNT) == COUNT);
	EXPECT(is_gapless(events, COUNT));
	EXPECT(all_in_order(events, COUNT));
	close(device);
}

/* Events of a kernel task that did not get the CPU for the first 17 due times or so. */
static int hold_up(uint32_t mode, struct rtproof_event *events)
{
	struct rtproof_start start = usual(mode);
	int device;

	start.priority = 10;
	become(SCHED_FIFO, 80);
	device = started(&start);
	spin_ns(20 * MS);
	EXPECT(read_all(device, events, HELD_UP) == HELD_UP);
	become(SCHED_OTHER, 0);
	return device;
}

/* A task that is held up takes the oldest event, and those that came meanwhile are missed. */
static void task_held_up(void)
{
	struct rtproof_event events[HELD_UP];
	struct rtproof_summary summary;
	int device = hold_up(RTPROOF_TASK, events);

	EXPECT(events[0].missed >= 5);
	EXPECT(events[0].task_ns >= (int64_t)(5 * MS));
	EXPECT(events[0].irq_ns < events[0].task_ns);
	EXPECT(is_gapless(events, HELD_UP));
	ioctl(device, RTPROOF_STOP);
	summary = summary_of(device, RTPROOF_STAGE_TASK, NULL);
	EXPECT(summary.missed >= events[0].missed);
	EXPECT(summary.count == summary_of(device, RTPROOF_STAGE_IRQ, NULL).count);
	close(device);
}

static void user(void)
{
	struct rtproof_start start = usual(RTPROOF_USER);
	int device = started(&start);
	struct rtproof_event event;

	for (int i = 0; i < COUNT; i++) {
		int64_t task_ns;

		EXPECT(read_all(device, &event, 1) == 1);
		task_ns = (int64_t)(now_ns() - start.first_due_ns - event.index * start.period_ns);
		EXPECT(event.irq_ns >= 0);
		EXPECT(event.irq_ns <= task_ns);
		EXPECT(event.task_ns == RTPROOF_NONE);
	}
	close(device);
}

static void user_slow(void)
{
	struct rtproof_start start = usual(RTPROOF_USER);
	struct rtproof_event events[10];
	struct rtproof_summary summary;
	int device = started(&start);

	for (int i = 0; i < 10; i++) {
		usleep(8500);
		EXPECT(read(device, &events[i], sizeof(events)) == sizeof(events[i]));
		EXPECT(events[i].missed >= 4);
	}
	EXPECT(events[0].index == 0);
	EXPECT(is_gapless(events, 10));
	ioctl(device, RTPROOF_STOP);
	summary = summary_of(device, RTPROOF_STAGE_IRQ, NULL);
	EXPECT(summary.lost == 0);
	EXPECT(summary.count >= 10 && summary.count <= 11);
	EXPECT(summary.missed >= 40);
	close(device);
}

static void loop(void)
{
	struct rtproof_start start = usual(RTPROOF_LOOP);
	struct rtproof_event events[COUNT];
	int device;

	start.period_ns = 2 * MS;
	device = started(&start);
	EXPECT(read_all(device, events, COUNT) == COUNT);
	for (int i = 0; i < COUNT; i++) {
		EXPECT(events[i].index == (uint64_t)i);
		EXPECT(events[i].missed == 0);
		EXPECT(events[i].irq_ns == RTPROOF_NONE);
		EXPECT(events[i].task_ns >= 0);
	}
	close(device);
}

/* Cycles that were late come one directly after the other: each is a period less late. */
static void loop_catches_up(void)
{
	struct rtproof_event events[HELD_UP];
	int device = hold_up(RTPROOF_LOOP, events);

	EXPECT(events[0].task_ns >= (int64_t)(10 * MS));
	EXPECT(events[5].task_ns < events[0].task_ns - (int64_t)(4 * MS));
	for (int i = 0; i < HELD_UP; i++)
		EXPECT(events[i].index == (uint64_t)i && events[i].missed == 0);
	EXPECT(summary_of(device, RTPROOF_STAGE_TASK, NULL).missed == 0);
	close(device);
}

static void policy(void)
{
	struct rtproof_start start = usual(RTPROOF_TASK);
	int device = started(&start);
	struct sched_param param;
	cpu_set_t cpus;
	int32_t id = 0;

	EXPECT(ioctl(device, RTPROOF_TASK_ID, &id) == 0);
	EXPECT(id > 1);
	EXPECT(syscall(SYS_sched_getscheduler, id) == SCHED_FIFO);
	EXPECT(syscall(SYS_sched_getparam, id, &param) == 0 && param.sched_priority == 90);
	EXPECT(sched_getaffinity(id, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) == 1 && CPU_ISSET(0, &cpus));
	close(device);
	EXPECT(error_of((int)syscall(SYS_sched_getscheduler, id)) == ESRCH);
}

static void first_due_past(void)
{
	struct rtproof_start start = usual(RTPROOF_TIMER);
	struct rtproof_event event;
	int device;

	start.first_due_ns = 1;
	device = started(&start);
	EXPECT(read_all(device, &event, 1) == 1);
	EXPECT(event.index * start.period_ns + 1 + start.period_ns > start.first_due_ns);
	EXPECT(event.index > 0);
	EXPECT(event.irq_ns >= 0 && event.irq_ns < (int64_t)(500 * MS));
	close(device);
}

const struct check mode_checks[] = {
	{ "timer", timer }, { "task", task }, { "task-held-up", task_held_up }, { "user", user }, { "user-slow", user_slow },
	{ "loop", loop }, { "loop-catches-up", loop_catches_up }, { "policy", policy }, { "first-due-past", first_due_past }, { 0 },
};
