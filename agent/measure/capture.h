/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of one series. It gathers samples into blocks, seconds, the largest values and the summary of a slice,
 * and writes them as chunks. Only the writer's thread runs this code.
 */
#ifndef RTPROOF_CAPTURE_H
#define RTPROOF_CAPTURE_H

#include "measure/above_levels.h"
#include "measure/ring.h"
#include "measure/slice_summary.h"
#include "record/record.h"

#include <stdbool.h>

/* CAPTURE_RESERVE: bytes kept for what a series still writes once the run shall end. */
enum { CAPTURE_BLOCK = 4096, CAPTURE_SECONDS = 256, CAPTURE_GAPS = 1024, CAPTURE_RESERVE = 16 * 1024 };

struct second {
	int64_t obtained, missed, max;
};

struct capture {
	/* What it is: the SERIES chunk. */
	uint16_t series;
	bool by_period; /* due times are a period apart, whenever the thread ran: on the grid, or from outside */
	bool keep_samples;
	int64_t period_ns;

	/* Where it is. */
	uint64_t index;  /* of the next activation */
	int64_t due_ns;  /* of the next activation */
	int64_t wake_before_ns, cycle_before_ns, value_before;
	bool has_before, has_cycle_before;

	/* Pending chunks. */
	int64_t values[CAPTURE_BLOCK], gap_position[CAPTURE_GAPS], gap_missed[CAPTURE_GAPS];
	uint32_t n, gaps;
	uint64_t block_index;
	int64_t block_due_ns, last_due_ns; /* of the block's first sample, and of its last */
	int64_t first_second;
	struct second seconds[CAPTURE_SECONDS];
	uint32_t n_seconds;
	struct top top;
	struct summary observed, charged;
	struct above *above; /* its own, from malloc(); NULL: this field is not judged */

	/* Samples that were not kept because they would have had to wait for the host too long, of one stretch. */
	uint64_t dropped, dropped_index;
	int64_t dropped_from_ns, dropped_to_ns; /* due times of the first and the last */

	/* Of the whole run, for END and for people watching. */
	uint64_t obtained, missed, lost, unkept; /* unkept: samples that were dropped; all else of them is in the record */
	int64_t min, max, last;
	double sum;
	int64_t first_due_ns; /* of the first activation that ran */
	/* Of what ran since the last line for people watching. */
	uint64_t recent;
	int64_t recent_max;
};

/* Activation 0 is due at first_due_ns from the origin. */
void capture_open(struct capture *capture, uint16_t series, bool by_period, bool keep_samples, int64_t period_ns,
		  int64_t first_due_ns);
void capture_close(struct capture *capture);

/* One entry of the ring. 0 or the record's error. */
int capture_add(struct capture *capture, struct record *record, const struct ring_entry *entry);

/* Writes what is pending: part of a checkpoint. The summary only if the slice ends with it. */
int capture_flush(struct capture *capture, struct record *record, bool slice_ends);

/* After the last flush of the run. */
void capture_end(struct capture *capture, struct record *record);

#endif
