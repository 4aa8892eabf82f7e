/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between kernels. Only this file and gpio_compat.h ask for a version. */
#ifndef RTPROOF_COMPAT_H
#define RTPROOF_COMPAT_H

#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/timer.h>
#include <linux/version.h>
#include <uapi/linux/sched/types.h>

/* Before 5.4 every hrtimer expires in hard interrupt context: there is no other kind. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 4, 0)
#define HRTIMER_MODE_ABS_HARD HRTIMER_MODE_ABS
#define HRTIMER_MODE_ABS_PINNED_HARD HRTIMER_MODE_ABS_PINNED
#endif

static inline void rtproof_timer_setup(struct hrtimer *timer,
				       enum hrtimer_restart (*fired)(struct hrtimer *),
				       enum hrtimer_mode mode)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, fired, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, mode);
	timer->function = fired;
#endif
}

/*
 * What a module may do to a task's policy: anything until 5.8, only "FIFO 50" from 5.9 on, and
 * anything again since sched_setattr_nocheck() was exported in 5.14.
 */
static inline int rtproof_set_policy(struct task_struct *task, u32 policy, u32 priority)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = policy,
		.sched_priority = priority,
	};

	return sched_setattr_nocheck(task, &attr);
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 9, 0)
	if (policy)
		sched_set_fifo(task);
	return 0;
#else
	struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler_nocheck(task, policy, &param);
#endif
}

/* Only since sched_setattr_nocheck() was exported in 5.14. */
static inline int rtproof_set_deadline(struct task_struct *task, u64 runtime_ns, u64 period_ns)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_DEADLINE,
		.sched_runtime = runtime_ns,
		.sched_deadline = period_ns,
		.sched_period = period_ns,
	};

	return sched_setattr_nocheck(task, &attr);
#else
	return -EOPNOTSUPP;
#endif
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define timer_delete_sync(timer) del_timer_sync(timer)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 16, 0)
typedef unsigned int __poll_t;
#define EPOLLIN POLLIN
#define EPOLLRDNORM POLLRDNORM
#define EPOLLERR POLLERR
#define EPOLLHUP POLLHUP
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 13, 0)
#define cpus_read_lock() get_online_cpus()
#define cpus_read_unlock() put_online_cpus()
#endif

/* On PREEMPT_RT, work that is not marked so runs in a task; older kernels have no mark. */
#ifndef IRQ_WORK_INIT_HARD
#define RTPROOF_HARD_WORK(work, function) init_irq_work(work, function)
#else
#define RTPROOF_HARD_WORK(work, function) (*(work) = IRQ_WORK_INIT_HARD(function))
#endif

#endif
