/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of a run whose record a host fetches while it is measured, because the board's flash must not be written. The
 * record is in RAM; what the host has safely is freed there by the process that follows the run (background/follow.h).
 */
#ifndef RTPROOF_STREAMING_H
#define RTPROOF_STREAMING_H

#include "measure/shared.h"

struct streaming {
	bool on, behind;
	char folder[512];
	int64_t heard_ns;  /* when the host last had more of the record, from the origin */
	int64_t again_ns;  /* the same for the first time since it fell behind; 0: not yet */
	int64_t log_given; /* bytes of the log that it has */
};

/*
 * Whether it can be done here: the record's folder is in RAM, the kernel can free the begin of a file (Linux 3.5), and the buffer
 * fits. 0, or a negative errno and why.
 */
int streaming_check(const struct config *config, char *why, size_t room);

/* Notes for the follower which CPUs are measured. */
void streaming_begin(struct streaming *streaming, const struct run *run);

/* What the host has by now; an event when it falls behind, and when it has caught up. For the thread that has the record. */
void streaming_look(struct streaming *streaming, struct run *run);

/* Whether lines that the host could do without would take too much room. */
bool streaming_log_is_full(const struct streaming *streaming);

/* Facts: what the link has cost until now, and how many samples were dropped. */
void streaming_end(struct streaming *streaming, struct run *run);

#endif
