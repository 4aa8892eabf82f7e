// SPDX-License-Identifier: GPL-2.0-only
/* The timer and its interrupt handler: TIMER, TASK and USER. */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/smp.h>

#include "source.h"

/*
 * A CPU that needs longer for the interrupt than the period is would do nothing else any more.
 * Each handler that has missed due times adds STRAIN_MISSED, each other one takes 1 away; at
 * STRAIN_LIMIT, after a thousand or so, the timer leaves out REST_NS.
 */
#define STRAIN_MISSED 16
#define STRAIN_LIMIT (1000 * STRAIN_MISSED)
#define REST_NS (25 * NSEC_PER_MSEC)

/* Due times from this one on that are not after `until`: at least this one itself. */
static u64 passed(const struct source *source, s64 until)
{
	if (until < source->period_ns)
		return 1;
	return div64_u64(until, source->period_ns) + 1;
}

static bool strained(struct source *source, bool missed)
{
	if (!missed) {
		source->strain -= !!source->strain;
		return false;
	}
	source->strain += STRAIN_MISSED;
	if (source->strain < STRAIN_LIMIT)
		return false;
	source->strain = 0;
	source->rests++;
	return true;
}

/* The event waits in the slot for whoever was woken. If one waits there, this one is missed. */
static void offer(struct source *source, const struct rtproof_event *event)
{
	if (source->slot_full) {
		source->slot.missed += 1 + event->missed;
		source->missed += source_counted(source, event->index, 1);
		return;
	}
	source->slot = *event;
	/* Pairs with tasks that read it without the lock: who sees it full has t1 behind it. */
	smp_store_release(&source->slot_full, true);
	if (source->mode == RTPROOF_USER && source_counted(source, event->index, 1))
		stage_add(&source->stages[RTPROOF_STAGE_IRQ], event->irq_ns);
}

static void deliver(struct source *source, const struct rtproof_event *event)
{
	if (source->mode == RTPROOF_TIMER)
		source_commit(source, event);
	else
		offer(source, event);
	if (source->mode == RTPROOF_TASK)
		wake_up_process(source->task);
	else
		source_wake(source);
}

/*
 * Never runs for more than one due time: those that have passed meanwhile are missed. The next one
 * is reckoned here and not by hrtimer_forward(), which stretches a period below the resolution.
 */
static void handle(struct source *source, ktime_t now)
{
	ktime_t due = hrtimer_get_expires(&source->timer);
	s64 late = ktime_to_ns(ktime_sub(now, due));
	u64 steps = passed(source, late);
	struct rtproof_event event = { .irq_ns = late, .task_ns = RTPROOF_NONE };

	if (strained(source, steps > 1))
		steps = passed(source, late + REST_NS);
	event.index = source->index;
	event.missed = min_t(u64, steps - 1, U32_MAX);
	source->index += steps;
	source->missed += source_counted(source, event.index + 1, steps - 1);
	hrtimer_set_expires(&source->timer, ktime_add_ns(due, steps * source->period_ns));
	deliver(source, &event);
}

static enum hrtimer_restart fired(struct hrtimer *timer)
{
	ktime_t now = ktime_get(); /* t1, before all else */
	struct source *source = container_of(timer, struct source, timer);
	enum hrtimer_restart again;

	/* Interrupts are off: a HARD timer runs in hard interrupt context on PREEMPT_RT too. */
	raw_spin_lock(&source->lock);
	if (source->state == SOURCE_RUNNING && source_strayed(source))
		source_fail(source, -ENODEV);
	if (source->state == SOURCE_RUNNING)
		handle(source, now);
	again = source->state == SOURCE_RUNNING ? HRTIMER_RESTART : HRTIMER_NORESTART;
	raw_spin_unlock(&source->lock);
	return again;
}

static enum hrtimer_mode mode_of(const struct source *source)
{
	return source->cpu < 0 ? HRTIMER_MODE_ABS_HARD : HRTIMER_MODE_ABS_PINNED_HARD;
}

/* A pinned timer stays on the CPU that starts it: this runs on the one that was asked for. */
static void start_here(void *data)
{
	struct source *source = data;

	hrtimer_start(&source->timer, source_due(source, source->index), mode_of(source));
}

int source_timer_start(struct source *source)
{
	rtproof_timer_setup(&source->timer, fired, mode_of(source));
	if (source->cpu >= 0)
		return smp_call_function_single(source->cpu, start_here, source, 1);
	start_here(source);
	return 0;
}
