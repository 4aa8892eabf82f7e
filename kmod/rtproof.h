/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note OR Apache-2.0 */
/*
 * /dev/rtproof: latency of a timer as the kernel itself sees it. Between the module and whoever opens the device; needs
 * CAP_SYS_ADMIN. One open file is one source: ioctl RTPROOF_START sets its timer going, read() takes its events, close ends it.
 *
 * Every due time is first_due_ns + k * period_ns of CLOCK_MONOTONIC. t0 is the due time, t1 the first clock reading in the timer's
 * interrupt handler, t2 the first one in the task that was woken: a task of the kernel (TASK, LOOP), or whoever sleeps in
 * read() and takes it by itself (USER). So t1 - t0 and t2 - t0 belong to the same event.
 *
 * An open file is started once: a second source is a second open file. read() gives whole events only. It sleeps until batch of
 * them are there, or until batch_ns have passed and there is at least one; a signal ends it. Behind the last event of a stopped
 * source it returns 0, or fails with ENODEV if the source stopped by itself because its CPU was switched off. poll() works.
 */
#ifndef RTPROOF_UAPI_H
#define RTPROOF_UAPI_H

#ifndef RTPROOF_TYPES_ARE_THERE /* for C libraries without the kernel's headers */
#include <linux/ioctl.h>
#include <linux/types.h>
#endif

#define RTPROOF_ABI 1

enum rtproof_mode {
	RTPROOF_TIMER = 0, /* t1 only */
	RTPROOF_TASK = 1,  /* t1, and t2 of a kernel task that the handler wakes */
	RTPROOF_USER = 2,  /* t1, and the handler wakes the reader: one event for each read(), the oldest not read yet */
	RTPROOF_LOOP = 3,  /* t2 only: a kernel task that sleeps until each due time in turn and catches up when late */
};

struct rtproof_start {
	__u32 size; /* of this structure */
	__u32 mode;
	__s32 cpu;       /* of the timer and of the kernel task; -1: where it happens to be */
	__u32 policy;    /* of the kernel task: 0 SCHED_OTHER, 1 SCHED_FIFO, 2 SCHED_RR; read back what it has, see TASK_ID */
	__u32 priority;  /* 1 to 99 with FIFO and RR, else 0 */
	__u32 batch;     /* read() sleeps until it has so many events or batch_ns have passed; USER: must be 1 */
	__u64 batch_ns;
	__u64 first_due_ns; /* if already in the past, the first event is that of the next due time (its index tells); at most 1 h ahead */
	__u64 period_ns;    /* 20 us to 1 h */
	/* The summary is of due times from from_index on and before end_index (0: no end); read() gives those outside as well. */
	__u64 from_index, end_index;
};

/* A stage that the mode has not is RTPROOF_NONE. */
#define RTPROOF_NONE (-0x7fffffffffffffffLL - 1)

struct rtproof_event {
	__u64 index;   /* k of its due time */
	__s64 irq_ns;  /* t1 - t0 */
	__s64 task_ns; /* t2 - t0 */
	__u32 missed;  /* due times directly after this one that had no event of their own */
	__u32 lost;    /* events directly before this one that were there and that nobody read in time */
};

/*
 * Every due time between from_index and end_index so far, also of the events that were lost: one value of each stage for each event, so
 * count + missed of them have passed. rests: how often the source gave way by itself for some milliseconds because the CPU could not keep up with
 * the period (LOOP catches up afterwards, the other modes count what they missed). The bins are those of the record
 * (docs/record-format.md, SUMMARY): of values from 0 on up to bin RTPROOF_BINS - 1; what lies outside is counted in below and
 * above, and is in min, max and sums all the same.
 */
enum { RTPROOF_STAGE_IRQ = 0, RTPROOF_STAGE_TASK = 1, RTPROOF_STAGES = 2, RTPROOF_BINS = 1024 + 23 * 512 };

struct rtproof_summary {
	__u32 size;
	__u32 stage;
	__u64 count, lost, missed, rests;
	__s64 min, max, sum;
	__u64 sum_squares_low, sum_squares_high;
	__u64 below, above;
	__u64 bins_address; /* of RTPROOF_BINS __u64, filled in unless 0 */
};

#define RTPROOF_START _IOW('r', 0x90, struct rtproof_start)
#define RTPROOF_STOP _IO('r', 0x91)
#define RTPROOF_SUMMARY _IOWR('r', 0x92, struct rtproof_summary)
#define RTPROOF_VERSION _IOR('r', 0x93, __u32) /* RTPROOF_ABI */
/*
 * Thread id of the kernel task, ESRCH if there is none. Linux 5.9 to 5.13 lets no module choose a priority: the task is then
 * SCHED_FIFO 50 when FIFO or RR was asked, and whoever started it sets what was asked with sched_setscheduler(2).
 */
#define RTPROOF_TASK_ID _IOR('r', 0x94, __s32)

#endif
