/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a measuring thread notes about itself, after each measured interval: its CPU at every activation where that is cheap,
 * everything else at random activations. A look from outside once a second would miss a change that is undone before the
 * next look. The thread only stores words; the writer makes rows of them.
 */
#ifndef RTPROOF_CONDITIONS_H
#define RTPROOF_CONDITIONS_H

#include "record/record.h"
#include "system/cpus.h"
#include "system/threads.h"

#include <stdbool.h>

enum { DEVIATIONS_MOST = 8, CONDITIONS_ROWS = 600 };

/* By their numbers in the record. */
enum condition { CONDITION_CPU, CONDITION_POLICY, CONDITION_PRIORITY, CONDITION_AFFINITY };

struct deviation {
	uint32_t kind, seen, count;
};

/* Words of 32 bits that only grow, modulo 2^32: stored by the thread, read by the writer. */
struct noted {
	uint32_t noted, elsewhere, checks, other_policy, other_priority, delay_us, switches;
};

struct conditions {
	/* What should be. cpu -1: not bound. */
	int cpu, policy, priority;

	/* How it is looked at: set by conditions_open(). */
	uint32_t mean; /* activations from one check to the next, on average; 0: another thread is measured, nothing is noted */
	uint32_t seed;
	bool every;    /* the CPU is read at every activation */
	int delay_fd;  /* or -errno */

	/* The thread's own. */
	uint32_t state, left, reads;
	int64_t delay_before_ns, switches_before;

	struct noted now;
	uint32_t n_deviations;
	struct deviation deviations[DEVIATIONS_MOST];
};

/* The writer's: what it has seen, and rows that are not written yet. */
struct conditions_log {
	struct noted before;
	uint32_t counts[DEVIATIONS_MOST]; /* of the deviations, when last written */
	uint32_t rows, affinities;        /* affinities: looks that found another one, since the last row */
	uint32_t affinities_unwritten;
	int64_t time_ms;                  /* of the last row of the chunk */
	bool has_affinity;
	struct cpus affinity, other;      /* that should be; the last other one */
	struct bytes bytes;
};

/* Called by the thread itself before it measures. period_ns says how often to look; measured: this thread is the one measured. */
void conditions_open(struct conditions *conditions, bool measured, int64_t period_ns, uint32_t seed);
void conditions_close(struct conditions *conditions);

/* Called by the thread behind each activation. */
void conditions_note(struct conditions *conditions);

/* The distance to the next check: 1 to 2 * mean - 1, all equally likely. Pure but for the state. */
uint32_t conditions_distance(uint32_t *state, uint32_t mean);

/* From outside: another affinity than at the first look, or than that of the thread's one CPU, is a deviation. */
void conditions_look(struct conditions_log *log, int cpu, const struct cpus *affinity);

/* A row of what came since the last one; then all rows as a chunk. */
void conditions_row(struct conditions_log *log, const struct conditions *conditions, int64_t time_ns);
void conditions_write(struct conditions_log *log, const struct conditions *conditions, int thread, struct record *record);

#endif
