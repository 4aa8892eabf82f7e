/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generator's side of a response: when the next edge (or post to another thread) is given, which edge that comes back answers
 * it, and what that makes an activation of. Pure: nothing here waits, reads a clock or drives a line.
 *
 * An answer on one wire does not say to which edge it belongs. So there is never more than one edge without an answer: the next
 * one is held back until it comes. An answer that comes after the next due time is thus worth more than a period, never less than
 * it was, and the due times that passed meanwhile are missed.
 */
#ifndef RTPROOF_STIMULUS_H
#define RTPROOF_STIMULUS_H

#include "probes/probe.h"

#include <stdbool.h>
#include <stdint.h>

struct stimulus {
	int64_t due_ns, period_ns; /* of the edge that waits for its answer, or of the next one */
	int64_t given_ns;          /* just before the line was driven; 0: no edge waits */
	bool both;    /* each edge goes to the other level; else each is given from the same level, to which the line goes back */
	bool level;   /* that the line is driven to by the next edge, or has been */
	uint32_t skipped; /* due times directly before it at which no edge could be given */

	/* For the account at the end. */
	uint64_t given, answered, unanswered, strays;
};

/* The edge is about to be given. Due times that have passed by a period or more had none: the generator itself was late. */
void stimulus_give(struct stimulus *stimulus, int64_t now_ns);

/* Whether an edge of that time (0: unknown) and to that level is the answer. Another is a stray: it came before, or goes elsewhere. */
bool stimulus_takes(struct stimulus *stimulus, int64_t edge_ns, bool level);

/* Fills in an activation whose last value is given; the edge after it is next. */
void stimulus_end(struct stimulus *stimulus, int64_t value_ns, bool answered, struct activation *activation);

#endif
