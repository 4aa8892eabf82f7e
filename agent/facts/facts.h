/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes evidence into the record: what the user asked for and what really happened, as facts, files and counters. Nothing
 * here judges. The thread that owns the record at the time calls these functions.
 */
#ifndef RTPROOF_FACTS_H
#define RTPROOF_FACTS_H

#include "facts/kinds.h"

/* What the system granted of what the run asked for. */
struct granted {
	int guard_priority; /* 0: no guard runs */
	int dma_latency_fd; /* or -errno */
	int lock_error;     /* of locking memory: 0 or -errno */
	int64_t trace_seed;
	const char *trace_refused; /* empty: it was not */
};

/* Opens what will be read during the run: counters, kernel messages. */
void facts_open(struct facts *facts, struct run *run);
void facts_close(struct facts *facts);

/* BEGIN, SERIES, COUNTER and everything known before the first sample. */
void facts_at_start(struct facts *facts, const struct granted *granted);

/* Counters, kernel messages, and whether the threads still are what they should be. */
void facts_each_second(struct facts *facts);

/* The calling thread's own policy, priority and CPUs, as those of the writer. */
void facts_of_writer(struct run *run);

/* What the threads read about themselves, and the system once more. */
void facts_at_end(struct facts *facts);

/* END with the totals. */
void facts_finish(struct run *run);

#endif
