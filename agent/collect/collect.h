/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads everything that an audit judges: the paths of paths.h, and what must be asked otherwise (probes.h). A separate process reads, because a
 * read of some drivers never returns; it is left alone then, and the next one goes on behind that path.
 */
#ifndef RTPROOF_COLLECT_H
#define RTPROOF_COLLECT_H

#include "record/record.h"

struct collection {
	struct bytes entries;
	int hung; /* reads that did not return in time */
};

/* Reads all of it; pid: also of this process, unless 0. 0, or a negative errno: nothing could be read. */
int collect_start(struct collection *collection, int pid);

/* Reads once more what is counted. */
int collect_again(struct collection *collection, int pid);

/* Appends what has been read to a record, and forgets it. */
int collect_write(struct collection *collection, struct record *record, int64_t time_ns);

void collect_free(struct collection *collection);

/* Prints a line for each thing that is read: its kind, a tab, its pattern or name. */
void collect_list(void);

#endif
