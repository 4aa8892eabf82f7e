/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the kernel's events while the loop runs, by plain writes to tracefs: in an instance of its own, or at the top
 * where the kernel has no instances. A separate thread switches the trace on and off; the measuring threads know nothing of
 * it. system/undo.h restores everything.
 */
#ifndef RTPROOF_TRACE_H
#define RTPROOF_TRACE_H

#include "measure/shared.h"
#include "system/undo.h"
#include "trace/plan.h"
#include "trace/recorder.h"
#include "trace/tracefs.h"
#include "trace/waits.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct trace {
	struct trace_plan plan;
	struct run *run;

	/* What was had. */
	struct undo undo;
	const char *root;
	char place[TRACEFS_PATH]; /* the instance, or the root */
	bool own;                 /* it is an instance, which goes with all that is in it */
	bool no_names;            /* the kernel notes no names of threads for it */
	int hold;                 /* a file of the instance; -1: none */

	/* While it runs. */
	bool runs, recording;
	pthread_t thread;
	int ends[2];   /* it ends when the second one is closed */
	int64_t block; /* the next one */
	struct recorder recorder;
	struct symbols *symbols; /* of the functions whose addresses occur */
	int symbols_error;
	bool prepares;         /* what is to be written is noted in .. */
	struct bytes prepared; /* .. here: names and contents */
	char stacks[64]; /* what could be had of them, in words */
	struct waits waits;

	char refused[256]; /* why there is no trace although one was asked for, if it may be so; empty: there is one */
};

/*
 * All but recording, for what is planned. Before there are threads. 0, or -errno with the reason as a sentence in why. This and
 * the others do nothing where no trace was asked for. One that is optional and can't be had is asked for no more.
 */
int trace_open(struct trace *trace, struct run *run, char *why, size_t room);

/*
 * Reads how the trace is to be read, before the measuring threads are released: where tracefs is slow, whoever reads it holds a lock
 * that the switching needs.
 */
void trace_prepare(struct trace *trace);

/* Starts the thread that begins recording at the origin, and switches from block to block. */
void trace_start(struct trace *trace);

/* Ends that thread and the recording. May be called again. */
void trace_stop(struct trace *trace);

/*
 * Writes into the record what was prepared, before anybody else writes; and at the end what was recorded. A flight recorder
 * writes between the two.
 */
void trace_describe(struct trace *trace);
void trace_keep(struct trace *trace);

/* Waits until all is as it was. */
void trace_close(struct trace *trace);

#endif
