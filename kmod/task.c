// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) "rtproof: " fmt
/* The kernel tasks: one that the handler wakes (TASK), and a loop that sleeps by itself (LOOP). */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/sched.h>

#include "source.h"

#define AWAKE_NS (500 * NSEC_PER_MSEC)
#define REST_MS 25

/*
 * A FIFO task that is always late never sleeps, and would lock a machine with one CPU where
 * real-time throttling is switched off. It rests for a twentieth of its time, which shows in the
 * summary.
 */
static void give_way(struct source *source, ktime_t *slept)
{
	u64 rests;

	if (ktime_to_ns(ktime_sub(ktime_get(), *slept)) < AWAKE_NS) {
		cond_resched();
		return;
	}
	raw_spin_lock_irq(&source->lock);
	rests = ++source->rests;
	raw_spin_unlock_irq(&source->lock);
	if (rests == 1)
		pr_warn("task %d was late for 500 ms on end: now and then it rests for %d ms\n",
			current->pid, REST_MS);
	msleep(REST_MS);
	*slept = ktime_get();
}

/* The CPU is gone. The task may not end by itself, because kthread_stop() still needs it. */
static void wait_for_end(struct source *source)
{
	raw_spin_lock_irq(&source->lock);
	source_fail(source, -ENODEV);
	raw_spin_unlock_irq(&source->lock);
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
}

/* Waits for an event in the slot and takes t2. False: the task is to end. */
static bool await_event(struct source *source, ktime_t *now, ktime_t *slept)
{
	bool has_slept = false;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		/* Only then the clock: an event that came in between would have its t1 after t2. */
		if (smp_load_acquire(&source->slot_full)) {
			__set_current_state(TASK_RUNNING);
			*now = ktime_get();
			if (has_slept)
				*slept = *now;
			return true;
		}
		schedule();
		has_slept = true;
	}
	__set_current_state(TASK_RUNNING);
	return false;
}

static void take_slot(struct source *source, ktime_t now)
{
	struct rtproof_event *event = &source->slot;

	raw_spin_lock_irq(&source->lock);
	event->task_ns = ktime_to_ns(ktime_sub(now, source_due(source, event->index)));
	source_commit(source, event);
	source->slot_full = false;
	raw_spin_unlock_irq(&source->lock);
}

static int serve(void *data)
{
	struct source *source = data;
	ktime_t slept = ktime_get();
	ktime_t now;

	while (await_event(source, &now, &slept)) {
		if (source_strayed(source)) {
			wait_for_end(source);
			break;
		}
		take_slot(source, now);
		give_way(source, &slept);
	}
	return 0;
}

/*
 * Sleeps until the due time unless it has passed already, and takes t2. False: the task is to end.
 * What kind of timer wakes it is left to the kernel, as for any driver's loop: on PREEMPT_RT that
 * of a task without real-time policy goes through a softirq.
 */
static bool sleep_until(ktime_t due, ktime_t *now, ktime_t *slept)
{
	bool has_slept = false;

	while (!kthread_should_stop()) {
		*now = ktime_get();
		if (ktime_compare(*now, due) >= 0) {
			if (has_slept)
				*slept = *now;
			return true;
		}
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule_hrtimeout_range(&due, 0, HRTIMER_MODE_ABS);
		has_slept = true;
	}
	__set_current_state(TASK_RUNNING);
	return false;
}

static void commit_cycle(struct source *source, s64 late)
{
	struct rtproof_event event = { .irq_ns = RTPROOF_NONE, .task_ns = late };

	raw_spin_lock_irq(&source->lock);
	event.index = source->index++;
	source_commit(source, &event);
	raw_spin_unlock_irq(&source->lock);
}

/* Never skips a due time: late cycles follow each other without sleeping until it has caught up. */
static int loop(void *data)
{
	struct source *source = data;
	ktime_t slept = ktime_get();
	ktime_t due = source_due(source, source->index);
	ktime_t now;

	while (sleep_until(due, &now, &slept)) {
		if (source_strayed(source)) {
			wait_for_end(source);
			break;
		}
		commit_cycle(source, ktime_to_ns(ktime_sub(now, due)));
		due = ktime_add_ns(due, source->period_ns);
		give_way(source, &slept);
	}
	return 0;
}

/* It does not run before it is woken. */
int source_task_create(struct source *source, u32 policy, u32 priority)
{
	int (*run)(void *data) = source->mode == RTPROOF_LOOP ? loop : serve;
	struct task_struct *task = kthread_create(run, source, "rtproof/%d", source->cpu);
	int error;

	if (IS_ERR(task))
		return PTR_ERR(task);
	if (source->cpu >= 0)
		kthread_bind(task, source->cpu);
	error = rtproof_set_policy(task, policy, priority);
	if (error)
		kthread_stop(task);
	else
		source->task = task;
	return error;
}
