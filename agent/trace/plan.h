/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace shall be and which events it has: all that needs no tracefs. */
#ifndef RTPROOF_TRACE_PLAN_H
#define RTPROOF_TRACE_PLAN_H

#include "trace/trace.h"

/* Writes the reason as a sentence into why; err again. */
int trace_refuse(char *why, size_t room, int err, const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * Those of the kernel's events that the plan's patterns name, as folders, and those patterns without any that nobody gave. Names
 * such as "sched:sched_switch" have a zero behind each and one more behind the last. 0, or -errno with the reason in why.
 */
int trace_choose(struct trace *trace, const char *names, char *why, size_t room);

/* Four blocks after each other are on, off, off, on, or the other way round, as chance has it; the seed decides. */
bool trace_is_on_in(const struct trace *trace, int64_t block);

#endif
