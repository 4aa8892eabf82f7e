/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's events, recorded while the loop runs: plain writes to tracefs, in an instance of our own, or at the top where the
 * kernel has no instances. The main thread switches; the measuring threads know nothing of it. undo.h puts everything back.
 */
#ifndef RTPROOF_TRACE_H
#define RTPROOF_TRACE_H

#include "tracefs.h"
#include "undo.h"

#include <stddef.h>
#include <stdint.h>

struct run;

enum { TRACE_EVENTS = 64, TRACE_TEXT_FACTOR = 6 };

struct trace {
	/* The plan. */
	int64_t buffer_kib, seed; /* of each CPU */
	int cpus;
	char patterns[512];
	bool given; /* the user named the events */

	/* What was had. */
	struct undo undo;
	const char *root;
	char place[TRACEFS_PATH]; /* the instance, or the root */
	bool own;                 /* it is an instance, which goes with all that is in it */
	char events[TRACE_EVENTS][96], missing[512];
	int n_events;

	/* Where it is. */
	bool recording, over;
	int64_t next_ns; /* when there is something to switch; 0: not known yet */
	int64_t block;   /* the next one */
};

/* Reads what was asked and looks for room. 0, or -errno with the reason as a sentence in why. All do nothing where nothing was asked. */
int trace_plan(struct run *run, char *why, size_t room);

/* Bytes that it may add to the record. */
double trace_space(const struct run *run);

/* All but recording. Before there are threads. 0, or -errno with the reason as a sentence in why. */
int trace_open(struct run *run, char *why, size_t room);

/* Switches what is to be switched now, all off if it is over. When there is something to be switched next; INT64_MAX: never. */
int64_t trace_attend(struct run *run, bool over);

/* Writes what was recorded into the record. */
void trace_keep(struct run *run);

/* Waits until all is as it was. */
void trace_close(struct run *run);

#endif
