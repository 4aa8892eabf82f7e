/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in its program a thread waits: each time that it goes to sleep, the kernel follows its frame pointers. An instance of its own
 * does this, because there the option is for all events.
 */
#ifndef RTPROOF_WAITS_H
#define RTPROOF_WAITS_H

#include "record/bytes.h"
#include "system/undo.h"
#include "trace/plan.h"
#include "trace/tracefs.h"

/* The event of a process that runs another program from then on, so that its addresses mean something else. */
#define WAITS_EXEC "sched/sched_process_exec"

struct waits {
	bool on;
	char place[TRACEFS_PATH];
	int hold; /* a file of the instance, so that nobody takes it for one that is left */
	char told[64]; /* what could be had, in words */
	struct bytes maps; /* of the process, as it was last seen */
};

/* For a trace whose events are chosen, and whose own place is there already. What can't be had is told. */
void waits_open(struct waits *waits, struct undo *undo, const char *root, const struct trace_plan *plan);

/* Reads which files the process runs code of. One that has ended leaves what was seen before. */
void waits_look(struct waits *waits, int64_t process);

void waits_close(struct waits *waits);

#endif
