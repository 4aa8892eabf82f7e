/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that reads the kernel's buffers while the run lasts. It keeps all pages, or it is the flight recorder, which forgets all
 * but those that an activation needs (docs/record-format.md, "The flight recorder"). It never stops the trace, and nobody waits for it.
 */
#ifndef RTPROOF_RECORDER_H
#define RTPROOF_RECORDER_H

#include "measure/shared.h"
#include "record/deflate.h"
#include "trace/columns.h"
#include "trace/plan.h"
#include "trace/spool.h"
#include "trace/symbols.h"
#include "trace/windows.h"

#include <pthread.h>

enum { RECORDER_BATCH = 32 };

struct recorder {
	bool open; /* it is the flight recorder */
	const struct trace_plan *plan;
	struct run *run;
	struct windows windows;
	struct spool spool; /* of all pages */
	uint8_t *page;      /* that is being read; NULL: not all are kept */
	pthread_mutex_t mutex; /* for the windows, between the recorder and the writer */
	int *fds;              /* of each CPU's buffer; -1: there is none */
	int64_t offset_ns;     /* the trace's clock minus CLOCK_MONOTONIC */
	int64_t threshold_ns;  /* 0: what the first minute teaches */

	/* What is in the record, for the writer. */
	struct symbols *symbols; /* take the addresses in the pages */
	struct columns *columns; /* of the batch: windows whose pages are not all written yet, since when */
	struct window *batch[RECORDER_BATCH];
	int batched;
	int64_t batch_since_ns;
	struct bytes part, packed;
	struct deflate_table table;
	int64_t written, renewed_ns; /* bytes; when it was last looked where the code of modules lies */
	uint64_t kept[WINDOW_ORDINARY + 1];

	pthread_t thread;
	bool runs;
	uint32_t stop;
	int64_t cpu_time_ns;
	char about[200]; /* its policy and CPUs */
};

/*
 * For a trace that is set up at this place below the root of tracefs; `plan` and `symbols` are set. The memory is had here, before it is locked. 0,
 * or -errno with the reason as a sentence in why. Without a recorder in the plan, this and the others do nothing.
 */
int recorder_open(struct recorder *recorder, struct run *run, const char *root, const char *place, char *why, size_t room);

/* The trace began to record now. */
void recorder_begin(struct recorder *recorder, int64_t now_ns);

/* CPUs and a policy for the calling thread: loads must not keep it from its work, and it must keep nobody from measuring. */
void recorder_place(const struct run *run);

/* Starts the thread, and ends it when the trace has been stopped: it reads what is left. 0 or -errno. */
int recorder_start(struct recorder *recorder);
void recorder_stop(struct recorder *recorder);

/*
 * For the writer: the sample of a thread that comes next, before its capture counts it; and that all that there were for now have
 * been seen. Windows above the threshold are written then, several at a time, as far as there is room for them.
 */
void recorder_see(struct recorder *recorder, int thread, const struct capture *capture, int64_t value);
void recorder_claim(struct recorder *recorder);

/* What there is to tell before the run; empty without a recorder. */
void recorder_tell(const struct recorder *recorder, char *text, size_t room);

/* Writes the other windows. What there is to tell at the end goes into text. */
void recorder_keep(struct recorder *recorder, char *text, size_t room);

void recorder_close(struct recorder *recorder);

#endif
