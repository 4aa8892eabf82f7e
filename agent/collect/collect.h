/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects everything that an audit judges: the paths of paths.h, and what must be asked otherwise (probes.h). A separate process
 * reads, because a read of some drivers never returns; that process is left alone then, and the next one goes on behind that path.
 */
#ifndef RTPROOF_COLLECT_H
#define RTPROOF_COLLECT_H

#include "collect/reader.h"

struct collection {
	struct bytes entries;
	struct bytes left_out; /* "WHAT: WHY; " of what a bound, or too many hung reads, left out */
	int hung, died;        /* reads that did not return in time; readers that ended before they were done */
	int in_place;          /* why this process read itself, without patience for what hangs: -errno of fork(), or 0 */
	int err;               /* why nothing could be collected, or 0 */
};

/* For a run, which reads run_paths itself, and for `facts`. */
extern const struct collect_plan collect_for_run, collect_for_facts;

/*
 * Reads all of a plan (MOMENT_START), or once more what is counted (MOMENT_END); pid: also of this process, unless 0. What was collected
 * before must have been written. 0, or a negative errno: nothing could be read.
 */
int collect_system(struct collection *collection, const struct collect_plan *plan, enum moment moment, int pid);

/* Appends what has been read to a record, with what was left out, and forgets it. Even of nothing the record says why. */
int collect_write(struct collection *collection, struct record *record, int64_t time_ns, enum moment moment);

void collect_free(struct collection *collection);

/* Prints a line for each thing that is read: its kind, a tab, its pattern or name. */
void collect_list(void);

#endif
