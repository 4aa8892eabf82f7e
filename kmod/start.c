// SPDX-License-Identifier: GPL-2.0-only
/* How a source begins and ends. */
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "source.h"

#define SHORTEST_NS (20 * NSEC_PER_USEC)
#define LONGEST_NS (3600 * (u64)NSEC_PER_SEC)

static bool has_task(u32 mode)
{
	return mode == RTPROOF_TASK || mode == RTPROOF_LOOP;
}

static int check_times(const struct rtproof_start *asked)
{
	u64 now = ktime_to_ns(ktime_get());

	if (asked->period_ns < SHORTEST_NS || asked->period_ns > LONGEST_NS)
		return -EINVAL;
	if (asked->first_due_ns > now + LONGEST_NS || asked->batch_ns > LONGEST_NS)
		return -EINVAL;
	/* A summary of no due time at all is nothing that anybody wants. */
	return asked->end_index && asked->end_index <= asked->from_index ? -EINVAL : 0;
}

static int check_batch(const struct rtproof_start *asked)
{
	u32 most = asked->mode == RTPROOF_USER ? 1 : RTPROOF_RING / 2;

	return asked->batch >= 1 && asked->batch <= most ? 0 : -EINVAL;
}

static int check_policy(const struct rtproof_start *asked)
{
	bool realtime = asked->policy == SCHED_FIFO || asked->policy == SCHED_RR;

	if (!has_task(asked->mode))
		return asked->policy || asked->priority ? -EINVAL : 0;
	if (!realtime)
		return asked->policy || asked->priority ? -EINVAL : 0;
	if (asked->priority < 1 || asked->priority > 99)
		return -EINVAL;
	return capable(CAP_SYS_NICE) ? 0 : -EPERM;
}

static int check_cpu(s32 cpu)
{
	if (cpu == -1)
		return 0;
	if (cpu < 0 || cpu >= nr_cpu_ids || !cpu_possible(cpu))
		return -EINVAL;
	return cpu_online(cpu) ? 0 : -ENODEV;
}

static int check(const struct rtproof_start *asked)
{
	int error;

	if (asked->size != sizeof(*asked) || asked->mode > RTPROOF_LOOP)
		return -EINVAL;
	error = check_times(asked);
	if (!error)
		error = check_batch(asked);
	if (!error)
		error = check_policy(asked);
	return error ? error : check_cpu(asked->cpu);
}

static void adopt(struct source *source, const struct rtproof_start *asked)
{
	source->mode = asked->mode;
	source->cpu = asked->cpu;
	source->batch = asked->batch;
	source->batch_ns = asked->batch_ns;
	source->first_due_ns = asked->first_due_ns;
	source->period_ns = asked->period_ns;
	source->from_index = asked->from_index;
	source->end_index = asked->end_index ? asked->end_index : U64_MAX;
}

/* All the memory there will ever be: nothing is allocated while it runs. */
static int allocate(struct source *source)
{
	int error = 0;

	source->ring = vzalloc(RTPROOF_RING * sizeof(*source->ring));
	if (!source->ring)
		return -ENOMEM;
	if (source->mode != RTPROOF_LOOP)
		error = stage_allocate(&source->stages[RTPROOF_STAGE_IRQ]);
	if (!error && has_task(source->mode))
		error = stage_allocate(&source->stages[RTPROOF_STAGE_TASK]);
	return error;
}

static void release_memory(struct source *source)
{
	stage_free(&source->stages[RTPROOF_STAGE_IRQ]);
	stage_free(&source->stages[RTPROOF_STAGE_TASK]);
	vfree(source->ring);
	source->ring = NULL;
}

/* The index counts from the first due time that was asked for, whenever that was. */
static void skip_past(struct source *source)
{
	s64 behind = ktime_to_ns(ktime_get()) - source->first_due_ns;

	if (behind >= 0)
		source->index = div64_u64(behind, source->period_ns) + 1;
}

static void set_state(struct source *source, enum state state)
{
	raw_spin_lock_irq(&source->lock);
	if (source->state != SOURCE_STOPPED)
		WRITE_ONCE(source->state, state);
	source_wake(source);
	raw_spin_unlock_irq(&source->lock);
}

static int set_going(struct source *source)
{
	int error = 0;

	skip_past(source);
	set_state(source, SOURCE_RUNNING);
	if (source->task)
		wake_up_process(source->task);
	if (source->mode != RTPROOF_LOOP)
		error = source_timer_start(source);
	return error;
}

static void stop_task(struct source *source)
{
	if (source->task)
		kthread_stop(source->task);
	source->task = NULL;
}

static int begin(struct source *source, const struct rtproof_start *asked)
{
	int error = allocate(source);

	if (!error && has_task(source->mode))
		error = source_task_create(source, asked->policy, asked->priority);
	if (!error)
		error = set_going(source);
	return error;
}
/* With source->control held, as source_stop(). */
int source_start(struct source *source, const struct rtproof_start *asked)
{
	int error;

	if (source->state != SOURCE_NEW)
		return -EBUSY;
	cpus_read_lock(); /* the CPU cannot go between the check and the start */
	error = check(asked);
	if (!error) {
		adopt(source, asked);
		error = begin(source, asked);
	}
	cpus_read_unlock();
	if (!error)
		return 0;
	source_stop(source);
	release_memory(source);
	return error;
}

/* No handler and no task of it runs any more when this returns; what there is can still be read. */
void source_stop(struct source *source)
{
	bool has_timer = source->state != SOURCE_NEW && source->mode != RTPROOF_LOOP;

	if (source->state != SOURCE_NEW)
		set_state(source, SOURCE_STOPPED);
	if (has_timer)
		hrtimer_cancel(&source->timer);
	stop_task(source);
}

struct source *source_new(void)
{
	struct source *source = kzalloc(sizeof(*source), GFP_KERNEL);

	if (!source)
		return NULL;
	mutex_init(&source->control);
	mutex_init(&source->reading);
	raw_spin_lock_init(&source->lock);
	source_events_init(source);
	return source;
}

void source_free(struct source *source)
{
	source_stop(source);
	irq_work_sync(&source->poll_work);
	release_memory(source);
	kfree(source);
}
