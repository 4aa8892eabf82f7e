/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a trace: what the user asked for and which of the kernel's events match. Nothing here needs tracefs. */
#ifndef RTPROOF_TRACE_PLAN_H
#define RTPROOF_TRACE_PLAN_H

#include "trace/marks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRACE_EVENTS = 160, TRACE_PATTERNS = 4096 };

/* What interrupt timers expire in: one of unknown events, the local timer's vector of x86, or one with a handler. */
enum timer_interrupt { TIMER_UNKNOWN, TIMER_OF_VECTOR, TIMER_OF_HANDLER };

struct trace_plan {
	bool asked;               /* else there is no trace, and all below is zero */
	int64_t blocks_ns;        /* it is on and off by turns, for this long; 0: on throughout */
	int64_t turns;            /* so many of them, and on from then on; 0: to the end */
	int64_t buffer_kib, seed; /* the buffer of each CPU */
	int cpus;
	char patterns[TRACE_PATTERNS];
	bool given; /* the user named the events */
	bool explains; /* the events are the preset that explains: what it does not need is left out */
	bool ends_with_sleep; /* of the probe's activations. Whoever has the plan sets this and timer before events are chosen */
	enum timer_interrupt timer;
	char events[TRACE_EVENTS][96], missing[1024]; /* that the kernel has, and patterns without any */
	int n_events;

	bool recorder, optional; /* a flight recorder; and if there can be no trace, the run goes on without */
	bool whole;              /* all events are kept while the run lasts, up to keep_mib */
	int64_t keep_mib;
	char calls_of[512];      /* the filter of trace_is_of_calls; empty: those events are not traced */
	bool stacks;             /* of who delays, and of the threads of calls_of where they wait, where that can be had */
	int64_t process;         /* of those threads; 0: not told */
	bool probes_faults;      /* the kernel has probes of page faults. Whoever has the plan sets this before events are chosen */
	int64_t threshold_ns;    /* 0: the smallest limit, or what the first minute teaches */
	int64_t top, ordinary;   /* windows of these reasons */
	int64_t record_kib;      /* room for windows in the record, for each hour that the run lasts, and at least for one */
	const char *marks[MARKS]; /* of an application; NULL: none. Whoever has the plan sets them before it is read */
	int64_t length_ns;       /* of the run; whoever has the plan sets it */
};

/* Reads what was asked (NULL: nothing) and looks for room. 0, or -errno with the reason as a sentence in why. */
int trace_plan(struct trace_plan *plan, const char *asked, int64_t blocks_ns, char *why, size_t room);

/* Bytes of the flight recorder's memory for the newest pages of each CPU, and for those that windows have. */
void trace_memory(const struct trace_plan *plan, int64_t *of_cpu, int64_t *held);

/* Bytes of windows that the flight recorder may add to the record. */
int64_t trace_record_room(const struct trace_plan *plan);

/* Bytes that the trace may add to the record. */
double trace_space(const struct trace_plan *plan);

/*
 * Those of the kernel's events that the plan's patterns name, as folders, and those patterns without any that nobody gave. Of
 * "one|other" the first counts that the kernel has. Names such as "sched:sched_switch" have a zero behind each and one more behind
 * the last. 0, or -errno with the reason in why.
 */
int trace_choose(struct trace_plan *plan, const char *names, char *why, size_t room);

/* Whether a chosen event, as a folder, tells of what a thread does: of its system calls, signals and page faults. */
bool trace_is_of_calls(const char *folder);

/* After the last turn it is on. Four blocks after each other are on, off, off, on, or the other way round, as chance has it; the seed decides. */
bool trace_is_on_in(const struct trace_plan *plan, int64_t block);

#endif
