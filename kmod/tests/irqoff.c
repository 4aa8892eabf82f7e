// SPDX-License-Identifier: GPL-2.0-only
/*
 * rtproof_irqoff: switches interrupts off on purpose, to see that a measurement shows it. Every
 * period_ms (on the grid of CLOCK_MONOTONIC) a kernel task switches them off for off_us, from
 * lead_ns before the grid's point on: a timer due at that point is late by off_us less lead_ns.
 * local_irq_save() does so on PREEMPT_RT too.
 *
 * longest_ns (readable) is the longest section so far by the clock, sections says how many.
 */
#define pr_fmt(fmt) "rtproof_irqoff: " fmt
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "../compat.h"

#define EARLY_NS (50 * NSEC_PER_USEC) /* for the task to wake up in, before it waits awake */

static unsigned int off_us = 100;
module_param(off_us, uint, 0444);
MODULE_PARM_DESC(off_us, "length of a section without interrupts, 1 to 10000 us");

static unsigned int period_ms = 10;
module_param(period_ms, uint, 0444);
MODULE_PARM_DESC(period_ms, "from one section to the next, 1 to 10000 ms, more than twice off_us");

static unsigned int lead_ns = 500;
module_param(lead_ns, uint, 0444);
MODULE_PARM_DESC(lead_ns, "how long before the grid's point it begins, at most 10000 ns");

static int cpu;
module_param(cpu, int, 0444);
MODULE_PARM_DESC(cpu, "where");

static unsigned long longest_ns;
module_param(longest_ns, ulong, 0444);

static unsigned long sections;
module_param(sections, ulong, 0444);

static struct task_struct *task;

static u64 now_ns(void)
{
	return ktime_to_ns(ktime_get());
}

static void section(u64 begin)
{
	u64 first, last, end = off_us * (u64)NSEC_PER_USEC;
	unsigned long flags;

	while (now_ns() < begin)
		cpu_relax();
	local_irq_save(flags);
	first = now_ns();
	do {
		last = now_ns();
	} while (last - first < end);
	local_irq_restore(flags);
	WRITE_ONCE(longest_ns, max_t(unsigned long, longest_ns, last - first));
	WRITE_ONCE(sections, sections + 1);
}

/* False: the task is to end. */
static bool sleep_until(u64 until)
{
	ktime_t expires = ns_to_ktime(until);

	while (now_ns() < until) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule_hrtimeout_range(&expires, 0, HRTIMER_MODE_ABS);
	}
	__set_current_state(TASK_RUNNING);
	return !kthread_should_stop();
}

/* The next point of the grid that there is time enough for. */
static u64 next_point(u64 period)
{
	return (div64_u64(now_ns() + 2 * EARLY_NS, period) + 1) * period;
}

static int disturb(void *unused)
{
	u64 period = period_ms * (u64)NSEC_PER_MSEC;
	u64 point = next_point(period);

	while (sleep_until(point - lead_ns - EARLY_NS)) {
		section(point - lead_ns);
		point = next_point(period);
	}
	return 0;
}

static bool sane(void)
{
	return off_us >= 1 && off_us <= 10000 && period_ms >= 1 && period_ms <= 10000 &&
	       period_ms * 1000 > 2 * off_us && lead_ns <= 10000 && cpu >= 0 &&
	       cpu < nr_cpu_ids && cpu_online(cpu);
}

static int __init irqoff_init(void)
{
	int error;

	if (!sane())
		return -EINVAL;
	task = kthread_create(disturb, NULL, "rtproof_irqoff");
	if (IS_ERR(task))
		return PTR_ERR(task);
	kthread_bind(task, cpu);
	error = rtproof_set_policy(task, SCHED_FIFO, 97);
	if (error)
		kthread_stop(task);
	else
		wake_up_process(task);
	return error;
}

static void __exit irqoff_exit(void)
{
	kthread_stop(task);
}

module_init(irqoff_init);
module_exit(irqoff_exit);
MODULE_DESCRIPTION("rtproof: interrupts off for a given time, to test what measures it");
MODULE_AUTHOR("rtproof");
MODULE_LICENSE("GPL");
