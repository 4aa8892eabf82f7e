/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of every time stamp: CLOCK_MONOTONIC in nanoseconds. */
#ifndef RTPROOF_CLOCK_H
#define RTPROOF_CLOCK_H

#include <stdint.h>

/*
 * Chooses between libc (which reads the vDSO where there is one) and the 32-bit system call on old 32-bit kernels, by
 * measuring both. Call once, before any thread exists.
 */
void clock_init(void);

/* Nanoseconds since boot. The measured loop calls this and nothing else. */
int64_t clock_now_ns(void);

/* Name of the way chosen, and the smallest cost of one reading out of 1,000. */
const char *clock_name(void);
int64_t clock_cost_ns(void);

/* Nanoseconds since 1970. */
int64_t clock_wall_ns(void);

#endif
