/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A source: one open file of /dev/rtproof with its timer, its kernel task, its events and sums.
 *
 * Locking. The hard interrupt handler shares data with tasks, and on PREEMPT_RT a spinlock_t would
 * sleep there, so the lock in between is a raw one. Held under it: a few words copied and
 * wake_up_process(), whose own locks are raw as well; never a copy to user space, an allocation, a
 * wait queue (its lock sleeps on RT) or a loop over the bins. Order: control, reading, lock.
 */
#ifndef RTPROOF_SOURCE_H
#define RTPROOF_SOURCE_H

#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "compat.h"
#include "rtproof.h"

#define RTPROOF_RING 4096 /* events kept for a slow reader; a power of two */

/* What one stage has seen. */
struct bank {
	u64 count;
	s64 min, max, sum;
	u64 squares_low, squares_high;
	u64 below, above;
	u64 bins[RTPROOF_BINS];
};

/*
 * 100 KiB of bins cannot be copied under a raw lock without being a latency themselves. So values
 * go into the active bank; whoever wants the sums swaps it for the empty spare one and adds it to
 * the total at leisure. A swap is one instant: the total is consistent.
 */
struct stage {
	struct bank *active; /* under source.lock */
	struct bank *spare;  /* empty; this and total under source.control */
	struct bank *total;
};

enum state { SOURCE_NEW, SOURCE_RUNNING, SOURCE_STOPPED };

struct source {
	struct mutex control; /* one ioctl at a time */
	struct mutex reading; /* one read() at a time */

	/* Set by START, constant afterwards. */
	u32 mode;
	int cpu; /* -1: any */
	u32 batch;
	u64 batch_ns;
	s64 first_due_ns, period_ns;
	u64 from_index, end_index; /* what the sums are about */
	struct rtproof_event *ring;
	struct task_struct *task;

	raw_spinlock_t lock;
	/* All below under lock. */
	enum state state;
	int error; /* why it stopped by itself */
	struct stage stages[RTPROOF_STAGES];
	u64 lost, missed, rests;
	u64 index; /* of the next due time */
	u32 head, tail;
	u32 lost_before; /* events lost since the last one in the ring */
	u32 strain;
	bool slot_full;
	struct rtproof_event slot; /* TASK and USER: the event that waits to be taken */
	struct task_struct *reader; /* sleeps in read() until there are so many events: */
	u32 wanted;

	struct hrtimer timer;
	wait_queue_head_t pollers;
	struct irq_work poll_work;
};

/* stage.c */
int stage_allocate(struct stage *stage);
void stage_free(struct stage *stage);
void stage_add(struct stage *stage, s64 value);
void stage_total(struct source *source, struct stage *stage, struct rtproof_summary *summary);

/* timer.c */
int source_timer_start(struct source *source);

/* task.c */
int source_task_create(struct source *source, u32 policy, u32 priority);

/* events.c */
void source_events_init(struct source *source);
u32 source_fill(const struct source *source);
void source_commit(struct source *source, const struct rtproof_event *event);
void source_wake(struct source *source);
void source_fail(struct source *source, int error);
ssize_t source_read(struct file *file, char __user *buffer, size_t size, loff_t *position);
__poll_t source_poll(struct file *file, poll_table *wait);

/* start.c */
int source_start(struct source *source, const struct rtproof_start *asked);
void source_stop(struct source *source);
struct source *source_new(void);
void source_free(struct source *source);

static inline ktime_t source_due(const struct source *source, u64 index)
{
	return ns_to_ktime(source->first_due_ns + (s64)index * source->period_ns);
}

/* How many of the n due times from index on the sums are about. */
static inline u64 source_counted(const struct source *source, u64 index, u64 n)
{
	u64 from = max(index, source->from_index);
	u64 end = min(index + n, source->end_index);

	return end > from ? end - from : 0;
}

static inline bool source_has(const struct source *source, u32 stage)
{
	return stage < RTPROOF_STAGES && source->stages[stage].total;
}

/* After the CPU was switched off, timers and tasks go on elsewhere, which is not what was asked. */
static inline bool source_strayed(const struct source *source)
{
	return source->cpu >= 0 && source->cpu != raw_smp_processor_id();
}

#endif
