/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary of one series over a slice of time: exact integer sums, a histogram, and the largest activations. Slices add
 * up to the run (docs/record-format.md, SUMMARY and TOP), so a slice is cleared once it is written.
 */
#ifndef RTPROOF_SLICE_SUMMARY_H
#define RTPROOF_SLICE_SUMMARY_H

#include "record/bytes.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Log-linear histogram over all signed 64-bit values: exact below 1,024, then 512 bins an octave (docs/record-format.md,
 * SUMMARY). Pages of 512 bins are made when a value first falls into them, so a thread's histogram is some ten kilobytes.
 */

enum { HIST_PAGE = 512, HIST_PAGES = 56 };

struct hist {
	uint32_t *negative[HIST_PAGES];
	uint32_t *positive[HIST_PAGES];
};

/* The bin of a value, and back: the largest value of a bin. */
int32_t hist_bin(int64_t value);
int64_t hist_top(int32_t bin);

/* 0, or -ENOMEM when a page could not be made. */
int hist_add(struct hist *hist, int64_t value);

/* Calls visit for every bin that is not empty, in increasing order. */
void hist_each(const struct hist *hist, void (*visit)(void *, int32_t bin, uint32_t count), void *data);
void hist_clear(struct hist *hist);
void hist_free(struct hist *hist);

/* The K largest activations of a run, exactly, and which of them have not been written yet. */

enum { TOP_K = 256 };

struct top_entry {
	uint64_t index;
	int64_t due_ns, value;
	bool fresh; /* not in the record yet */
};

/* A heap whose first entry is the smallest of the largest. */
struct top {
	struct top_entry entries[TOP_K];
	uint32_t n;
};

void top_add(struct top *top, uint64_t index, int64_t due_ns, int64_t value);

/* Appends what is fresh as the three arrays of a TOP chunk; false, and nothing, if there is nothing fresh. */
bool put_top(struct bytes *bytes, struct top *top);
bool top_is_fresh(const struct top *top);

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
