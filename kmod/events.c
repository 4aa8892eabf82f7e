// SPDX-License-Identifier: GPL-2.0-only
/* The events of a source on their way to whoever reads it. */
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "source.h"

#define COPY_AT_ONCE 16 /* as many as fit well on the stack */

/* How many events could be read now. Also called without the lock, for a hint. */
u32 source_fill(const struct source *source)
{
	if (source->mode == RTPROOF_USER)
		return READ_ONCE(source->slot_full);
	return READ_ONCE(source->head) - READ_ONCE(source->tail);
}

/*
 * With source->lock held. The reader is woken by hand: a wait queue has a lock that sleeps on
 * PREEMPT_RT. Those who poll() have to go through one, so they are woken by work behind the
 * interrupt, and only if there is anybody: an interrupt more for each event would be part of what
 * is measured.
 */
void source_wake(struct source *source)
{
	bool enough = source->state == SOURCE_STOPPED || source_fill(source) >= source->wanted;

	if (enough && source->reader)
		wake_up_process(source->reader);
	enough = source->state == SOURCE_STOPPED || source_fill(source) >= source->batch;
	if (enough && wq_has_sleeper(&source->pollers))
		irq_work_queue(&source->poll_work);
}

static void wake_pollers(struct irq_work *work)
{
	struct source *source = container_of(work, struct source, poll_work);

	wake_up_interruptible_all(&source->pollers);
}

void source_events_init(struct source *source)
{
	init_waitqueue_head(&source->pollers);
	init_irq_work(&source->poll_work, wake_pollers);
}

static void put_in_ring(struct source *source, const struct rtproof_event *event)
{
	struct rtproof_event *place = &source->ring[source->head % RTPROOF_RING];

	if (source->head - source->tail == RTPROOF_RING) {
		source->lost += source_counted(source, event->index, 1);
		source->lost_before++;
		return;
	}
	*place = *event;
	place->lost = source->lost_before;
	source->lost_before = 0;
	WRITE_ONCE(source->head, source->head + 1);
}

/* With source->lock held: the event has all its stages. */
void source_commit(struct source *source, const struct rtproof_event *event)
{
	bool counted = source_counted(source, event->index, 1);

	if (counted && source_has(source, RTPROOF_STAGE_IRQ))
		stage_add(&source->stages[RTPROOF_STAGE_IRQ], event->irq_ns);
	if (counted && source_has(source, RTPROOF_STAGE_TASK))
		stage_add(&source->stages[RTPROOF_STAGE_TASK], event->task_ns);
	put_in_ring(source, event);
	source_wake(source);
}

/* With source->lock held: the source stops by itself. */
void source_fail(struct source *source, int error)
{
	source->state = SOURCE_STOPPED;
	source->error = error;
	source_wake(source);
}

static u32 take_from_ring(struct source *source, struct rtproof_event *events, u32 room)
{
	u32 taken = min(source->head - source->tail, room);
	u32 i;

	for (i = 0; i < taken; i++)
		events[i] = source->ring[(source->tail + i) % RTPROOF_RING];
	WRITE_ONCE(source->tail, source->tail + taken);
	return taken;
}

static u32 take_from_slot(struct source *source, struct rtproof_event *events)
{
	if (!source->slot_full)
		return 0;
	events[0] = source->slot;
	source->slot_full = false;
	return 1;
}

static u32 take(struct source *source, struct rtproof_event *events, u32 room)
{
	u32 taken;

	raw_spin_lock_irq(&source->lock);
	if (source->mode == RTPROOF_USER)
		taken = take_from_slot(source, events);
	else
		taken = take_from_ring(source, events, room);
	raw_spin_unlock_irq(&source->lock);
	return taken;
}

/* Bytes copied. Events are gone from the source even if their copy fails, as with any pipe. */
static ssize_t copy_out(struct source *source, char __user *buffer, size_t room)
{
	struct rtproof_event events[COPY_AT_ONCE];
	size_t copied = 0;
	u32 taken;

	while (copied < room) {
		taken = take(source, events, min_t(size_t, room - copied, COPY_AT_ONCE));
		if (!taken)
			break;
		if (copy_to_user(buffer + copied * sizeof(*events), events, taken * sizeof(*events)))
			return -EFAULT;
		copied += taken;
		if (source->mode == RTPROOF_USER)
			break;
	}
	return copied * sizeof(*events);
}

/* Under the lock, so that nobody wakes a task that has left read(). */
static void set_reader(struct source *source, struct task_struct *reader, u32 wanted)
{
	raw_spin_lock_irq(&source->lock);
	source->reader = reader;
	source->wanted = wanted;
	raw_spin_unlock_irq(&source->lock);
}

static bool is_enough(const struct source *source)
{
	return source_fill(source) >= READ_ONCE(source->wanted) ||
	       READ_ONCE(source->state) == SOURCE_STOPPED;
}

static int sleep_for_events(struct source *source, u32 wanted)
{
	ktime_t until = ktime_add_ns(ktime_get(), source->batch_ns);
	int error = 0;

	set_reader(source, current, wanted);
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (is_enough(source))
			break;
		if (signal_pending(current)) {
			error = -ERESTARTSYS;
			break;
		}
		if (wanted == 1) {
			schedule();
		} else if (!schedule_hrtimeout(&until, HRTIMER_MODE_ABS)) {
			wanted = 1;
			set_reader(source, current, wanted);
		}
	}
	__set_current_state(TASK_RUNNING);
	set_reader(source, NULL, 0);
	return source_fill(source) ? 0 : error;
}

static ssize_t read_events(struct source *source, char __user *buffer, size_t room,
			   bool may_sleep)
{
	ssize_t copied;
	int error = 0;

	if (may_sleep)
		error = sleep_for_events(source, min_t(size_t, source->batch, room));
	if (error)
		return error;
	copied = copy_out(source, buffer, room);
	if (copied)
		return copied;
	if (READ_ONCE(source->state) == SOURCE_STOPPED)
		return source->error;
	return -EAGAIN;
}

ssize_t source_read(struct file *file, char __user *buffer, size_t size, loff_t *position)
{
	struct source *source = file->private_data;
	bool may_sleep = !(file->f_flags & O_NONBLOCK);
	size_t room = size / sizeof(struct rtproof_event);
	ssize_t result;

	if (!room || READ_ONCE(source->state) == SOURCE_NEW)
		return -EINVAL;
	if (!may_sleep && !mutex_trylock(&source->reading))
		return -EAGAIN;
	if (may_sleep && mutex_lock_interruptible(&source->reading))
		return -ERESTARTSYS;
	result = read_events(source, buffer, room, may_sleep);
	mutex_unlock(&source->reading);
	return result;
}

__poll_t source_poll(struct file *file, poll_table *wait)
{
	struct source *source = file->private_data;
	__poll_t ready = 0;

	/* Pairs with wq_has_sleeper(): queued first, looked afterwards. */
	poll_wait(file, &source->pollers, wait);
	smp_mb();
	if (READ_ONCE(source->state) == SOURCE_NEW)
		return EPOLLERR;
	if (READ_ONCE(source->state) == SOURCE_STOPPED)
		ready |= source->error ? EPOLLHUP | EPOLLERR : EPOLLHUP;
	if (source_fill(source) >= (ready ? 1 : source->batch))
		ready |= EPOLLIN | EPOLLRDNORM;
	return ready;
}
