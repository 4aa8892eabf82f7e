/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel counts, once a second. Stolen time and SMIs of the measured CPUs tell that the machine was gone, which no event of a
 * trace can. Interrupts, softirqs, pressure, page faults of the measuring threads and throttling are for runs that shall explain and
 * have no trace. Only SMIs need a privilege.
 */
#ifndef RTPROOF_KERNEL_COUNTS_H
#define RTPROOF_KERNEL_COUNTS_H

#include "measure/shared.h"

struct kernel_counts;

/*
 * first_id: of the first counter, and the next ones count on. everything: also what is for runs without a trace. NULL if there is no memory for
 * it. Writes the fact whether SMIs can be counted.
 */
struct kernel_counts *kernel_counts_open(struct run *run, int first_id, bool everything);

/* Reads all of it, and announces in the record what it sees for the first time. */
void kernel_counts_look(struct kernel_counts *counts);

/* What has changed since the last time, as entries of a TICK. How many. */
int kernel_counts_put(struct kernel_counts *counts, struct bytes *chunk);

/* NULL is nothing. */
void kernel_counts_close(struct kernel_counts *counts);

#endif
