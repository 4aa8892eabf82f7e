/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of one run share. run/run.c has the order of things; each thread and each part keeps what only it uses. */
#ifndef RTPROOF_SHARED_H
#define RTPROOF_SHARED_H

#include "measure/capture.h"
#include "measure/config.h"
#include "measure/worker.h"
#include "record/record.h"
#include "system/clock.h"

enum { EVENTS_MOST = 64 };

struct event {
	int64_t time_ns; /* of CLOCK_MONOTONIC */
	int thread;
	char kind[24], text[256];
};

/* What any thread says to the others: events for the writer, and that the run shall end. */
struct notices {
	pthread_mutex_t mutex; /* for all that follows */
	struct event events[EVENTS_MOST];
	int n_events, events_dropped;
	bool stop_asked;
	enum end_reason reason;
	char reason_text[256];
};

struct run {
	struct config *config;
	struct record record; /* the writer's while it runs, else the main thread's */
	struct gate gate;
	struct worker *workers;
	int started; /* of the workers */
	struct capture *captures; /* one for each field of each thread */
	int64_t origin_ns;
	struct notices notices;
	int wake_fds[2]; /* workers and run_ask_to_stop() wake the main thread here */
};

/* From any thread: ends the run; the first reason holds. Wakes the main thread. */
void run_ask_to_stop(struct run *run, enum end_reason reason, const char *text);

/* From any thread but a measuring one: notes an event, to be written by the writer. */
void run_note(struct run *run, int thread, const char *kind, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Writes a fact of the present time. For the thread that has the record. */
void run_fact(struct run *run, int thread, enum moment moment, const char *key, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void run_fact_number(struct run *run, int thread, enum moment moment, const char *key, int64_t value);

/* The captures of a thread, one for each field. */
struct capture *run_captures(const struct run *run, int thread);

/* Time of the record, from its origin. */
int64_t run_time_ns(const struct run *run);

#endif
