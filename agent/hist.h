/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log-linear histogram over all signed 64-bit values: exact below 1,024, then 512 bins an octave (docs/record-format.md,
 * SUMMARY). Pages of 512 bins are made when a value first falls into them, so a thread's histogram is some ten kilobytes.
 */
#ifndef RTPROOF_HIST_H
#define RTPROOF_HIST_H

#include <stdint.h>

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

#endif
