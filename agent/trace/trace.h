/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's events, recorded while the loop runs: plain writes to tracefs, in an instance of our own, or at the top where the
 * kernel has no instances. A thread of its own switches; the measuring threads know nothing of it. undo.h puts everything back.
 */
#ifndef RTPROOF_TRACE_H
#define RTPROOF_TRACE_H

#include "system/undo.h"
#include "trace/tracefs.h"

#include <pthread.h>
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

	/* While it runs. */
	bool runs, recording;
	pthread_t thread;
	int ends[2];   /* it ends when the second one is closed */
	int64_t block; /* the next one */
};

/* Reads what was asked and looks for room. 0, or -errno with the reason as a sentence in why. All do nothing where nothing was asked. */
int trace_plan(struct run *run, char *why, size_t room);

/* Bytes that it may add to the record. */
double trace_space(const struct run *run);

/* All but recording. Before there are threads. 0, or -errno with the reason as a sentence in why. */
int trace_open(struct run *run, char *why, size_t room);

/* Starts the thread that begins recording at the origin, and switches from block to block. */
void trace_start(struct run *run);

/* Ends that thread and the recording. May be called again. */
void trace_stop(struct run *run);

/* Writes what was recorded into the record. */
void trace_keep(struct run *run);

/* Waits until all is as it was. */
void trace_close(struct run *run);

#endif
