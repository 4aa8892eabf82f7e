/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of every time stamp: CLOCK_MONOTONIC in nanoseconds. */
#ifndef RTPROOF_CLOCK_H
#define RTPROOF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Chooses between libc (which reads the vDSO where there is one) and the 32-bit system call on old 32-bit kernels, by
 * measuring both. Call once, before any thread exists.
 */
void clock_init(void);

/* Nanoseconds since boot, without the time in which the system was suspended. The measured loop reads no other clock. */
int64_t clock_now_ns(void);

/* Name of the way chosen, and the smallest cost of one reading out of 1,000. */
const char *clock_name(void);
int64_t clock_cost_ns(void);

/* Nanoseconds since 1970. */
int64_t clock_wall_ns(void);

/*
 * CLOCK_MONOTONIC_RAW minus CLOCK_MONOTONIC: how far the one that is slewed has gone from the one that is not. False: the kernel
 * has no such clock (before 2.6.28), or something came between the readings each time.
 */
bool clock_raw_ns(int64_t *difference_ns);

/* Both clocks at one instant, as near as a program can tell: doubt_ns is how far apart the readings were. */
struct clock_pair {
	int64_t monotonic_ns, wall_ns, doubt_ns;
};

struct clock_pair clock_both(void);

/* How far somebody has set the wall clock between two readings; 0 if they differ no more than slewing and doubt allow. */
int64_t clock_step_ns(const struct clock_pair *before, const struct clock_pair *after);

#endif
