/* SPDX-License-Identifier: Apache-2.0 */
/* One measuring thread. It takes samples with a probe and pushes them into its ring. By default each measured CPU has one. */
#ifndef RTPROOF_WORKER_H
#define RTPROOF_WORKER_H

#include "measure/conditions.h"
#include "measure/ring.h"
#include "probes/probe.h"
#include "system/cpus.h"
#include "system/threads.h"

#include <pthread.h>
#include <signal.h>

/* What the kernel says about a thread, asked from inside. */
struct evidence {
	int policy, priority, cpu;
	int64_t timer_slack_ns, minor_faults, major_faults, voluntary_switches, involuntary_switches, cpu_time_ns;
	int64_t migrations, io_calls; /* -1: the kernel does not tell */
	int64_t tracer; /* process that traces the thread; 0: none; -1: the kernel does not tell */
	int64_t fair_ns; /* thread_fair_ns() */
	struct cpus affinity;
};

struct worker {
	/* The order: filled in before the thread starts. */
	int number, cpu; /* cpu -1: not bound */
	enum policy policy;
	int64_t timer_slack_ns; /* with POLICY_OTHER; 0: as inherited */
	int priority;
	const struct probe *probe;
	const struct method *method;
	const char *const *options; /* the probe's, NULL where not given */
	uint32_t fields;
	int64_t period_ns, phase_ns, warmup_ns;
	uint64_t count;      /* due times to measure */
	const struct cpus *cpus; /* of all measuring threads */
	int64_t duration_ns; /* off the grid only: when to end; INT64_MAX: by count */
	int64_t break_ns;    /* a latency above it is the last; 0: none is */
	struct gate *gate;
	pthread_t thread;

	/* Shared while it runs. Words of 32 bits, read and written whole. */
	struct ring ring;
	struct conditions conditions;
	uint32_t stop;  /* set by others */
	uint32_t task;  /* id of the thread whose lateness is measured, set in the probe's open(); 0: it is this one */
	uint32_t helper; /* id of a thread that the probe has besides; 0: none. The guard watches it, and it is woken to stop as well */
	bool helper_apart; /* it has a CPU of its own; set before `helper` */
	uint32_t done;  /* the thread has left its loop */
	int tid;

	void *state; /* the probe's */
	int64_t aim_ns; /* when the next activation is due, where the probe's take() alone knows it; 0: a period later */
	struct probe_file files[PROBE_FILES]; /* filled in by the probe's close() */
	int n_files;

	pthread_mutex_t said_mutex;
	struct bytes said; /* text that the writer has not taken yet */

	/* The writer's: what it last saw from outside. */
	bool seen;
	int seen_policy, seen_priority, seen_nice;
	int64_t seen_tracer, seen_fair_ns, seen_sleeps, seen_at_ns;
	struct conditions_log log;

	/* Results: valid when done. */
	int error;
	bool ended; /* this activation was the last, and why says the reason: the probe's take(), or break_ns */
	const char *failed_at;
	char why[192]; /* the probe's sentence in place of what the error number says; may be empty */
	uint32_t warmup_activations;
	int64_t next_due_ns, left_ns; /* the first due time not served, or when it ran last; and when the thread gave up waiting */
	struct evidence start, before, end;
};

/* Starts the thread; it waits at the gate. 0 or -errno. */
int worker_start(struct worker *worker);

/* Asks it to end soon, and wakes it if it sleeps. May be called again and again. */
void worker_stop(struct worker *worker);

/* Ends a thread's sleep; one that was not asleep yet notices nothing. */
void worker_wake(int tid);

/*
 * For a probe's open(): makes another thread the one whose lateness is measured, with the run's policy and priority. This one goes
 * out of its way: with the same priority it would make that one wait. 0 or -errno.
 */
int worker_adopt(struct worker *worker, int task);

/* For a probe that brings text in place of values: the writer puts it into the record as a part of a file. */
void worker_say(struct worker *worker, const char *text, size_t length);

/* Id of the thread whose lateness is measured. */
int worker_task(const struct worker *worker);

/*
 * True if it left without the answer to a due time that had passed so long ago that it can't be counted as late: ten periods,
 * and at least a second.
 */
bool worker_stalled(const struct worker *worker);

#endif
