/* SPDX-License-Identifier: Apache-2.0 */
/* One run: what its threads share, and the order of things. */
#ifndef RTPROOF_RUN_H
#define RTPROOF_RUN_H

#include "facts/files.h"
#include "facts/machine.h"
#include "measure/capture.h"
#include "measure/config.h"
#include "measure/worker.h"
#include "record/record.h"
#include "system/clock.h"
#include "trace/trace.h"

enum { EVENTS_MOST = 64, COUNTERS_MOST = 512 };

struct event {
	int64_t time_ns; /* of CLOCK_MONOTONIC */
	int thread;
	char kind[24], text[256];
};

struct counter {
	char name[64], path[128];
	struct running_load *load; /* or NULL: read the number in path */
};

struct run {
	struct config *config;
	struct record record;
	struct gate gate;
	struct worker *workers;
	int started; /* of them */
	struct capture *captures; /* one for each field of each thread */
	int64_t origin_ns;

	pthread_mutex_t mutex; /* for what follows up to "one thread's" */
	struct event events[EVENTS_MOST];
	int n_events, events_dropped;
	enum end_reason reason;
	char reason_text[256];
	bool stop_asked;

	uint32_t writer_stop, guard_stop; /* words, read and written whole */
	pthread_t writer, guard;
	bool guard_runs;
	int guard_priority;
	int wake_fds[2]; /* workers and run_ask_to_stop() wake the main thread here */

	/* One thread's: the writer's while it runs, else the main thread's. */
	struct counter counters[COUNTERS_MOST];
	int n_counters, kmsg_fd, kernel_lines;
	bool loads_read; /* their CPU time, at the first tick */
	struct rt_threads rt_threads;
	struct bytes rt_at_start;
	struct clock_pair clocks; /* when last looked at */
	int64_t checkpoints, slice_began; /* written, and written before the slice that has not ended */
	struct system_part system[SYSTEM_PARTS];

	/* The main thread's. */
	struct trace trace;
	int dma_latency_fd;
};

/* Measures and writes the record. 0, or a negative errno with the reason as a sentence in why. */
int run_measure(struct config *config, char *why, size_t room);

/* From any thread: ends the run; the first reason holds. Wakes the main thread. */
void run_ask_to_stop(struct run *run, enum end_reason reason, const char *text);

/* From any thread but a measuring one: notes an event, to be written by the writer. */
void run_note(struct run *run, int thread, const char *kind, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The captures of a thread, one for each field. */
struct capture *run_captures(const struct run *run, int thread);

/* Time of the record, from its origin. */
int64_t run_time_ns(const struct run *run);

#endif
