/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a trace: what the user asked for and which of the kernel's events match. Nothing here needs tracefs. */
#ifndef RTPROOF_TRACE_PLAN_H
#define RTPROOF_TRACE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRACE_EVENTS = 64, TRACE_TEXT_FACTOR = 6 };

struct trace_plan {
	bool asked;               /* else there is no trace, and all below is zero */
	int64_t blocks_ns;        /* it is on and off by turns, for this long; 0: on throughout */
	int64_t buffer_kib, seed; /* the buffer of each CPU */
	int cpus;
	char patterns[512];
	bool given; /* the user named the events */
	char events[TRACE_EVENTS][96], missing[512]; /* that the kernel has, and patterns without any */
	int n_events;
};

/* Reads what was asked (NULL: nothing) and looks for room. 0, or -errno with the reason as a sentence in why. */
int trace_plan(struct trace_plan *plan, const char *asked, int64_t blocks_ns, char *why, size_t room);

/* Bytes that the trace may add to the record. */
double trace_space(const struct trace_plan *plan);

/*
 * Those of the kernel's events that the plan's patterns name, as folders, and those patterns without any that nobody gave. Names
 * such as "sched:sched_switch" have a zero behind each and one more behind the last. 0, or -errno with the reason in why.
 */
int trace_choose(struct trace_plan *plan, const char *names, char *why, size_t room);

/* Four blocks after each other are on, off, off, on, or the other way round, as chance has it; the seed decides. */
bool trace_is_on_in(const struct trace_plan *plan, int64_t block);

#endif
