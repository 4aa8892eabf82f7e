/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells people who watch, on standard error, of the seconds in which a thread was above a limit: once for each, or again
 * where a still larger value reaches a second further. What decides a run live is told before the progress that covers it.
 */
#ifndef RTPROOF_OVER_H
#define RTPROOF_OVER_H

#include <stdbool.h>
#include <stdint.h>

struct over {
	int64_t second, worst_ns; /* the newest second above the limit */
	int64_t told_s;           /* how far beyond the limit was told of it, in whole seconds; -1: not at all */
	bool any;
};

/* A value above the limit. Seconds never go back. */
void over_add(struct over *over, int thread, int64_t limit_ns, int64_t second, int64_t value_ns);

/* Tells what has not been told yet. */
void over_tell(struct over *over, int thread, int64_t limit_ns);

#endif
