/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One view of one series over one slice of time: exact integer sums and a histogram. Slices add up to the run
 * (docs/record-format.md, SUMMARY), so a slice is cleared when it has been written.
 */
#ifndef RTPROOF_SUMMARY_H
#define RTPROOF_SUMMARY_H

#include "bytes.h"
#include "hist.h"

/* 128 bits by hand: 32-bit compilers have none, and a square of nanoseconds does not fit into 64. */
struct wide {
	uint64_t low, high;
};

struct summary {
	uint64_t count, lost;
	int64_t min, max, sum;
	struct wide sum_squares;
	uint64_t pairs, catch_up_pairs;
	struct wide sum_products; /* two's complement */
	int64_t first_due_ns, last_due_ns;
	struct hist hist;
};

/* 0 or -ENOMEM; the sums are right in both cases. */
int summary_add(struct summary *summary, int64_t due_ns, int64_t value);
void summary_add_pair(struct summary *summary, int64_t before, int64_t value);
void summary_clear(struct summary *summary);

/* Everything of the SUMMARY payload behind the view. */
void put_summary(struct bytes *bytes, const struct summary *summary);

/* sum += a * b, modulo 2^128. */
void wide_add_product(struct wide *sum, int64_t a, int64_t b);

#endif
