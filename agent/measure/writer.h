/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: a thread of normal priority that empties the rings into the record, away from the CPUs that are measured if it can. */
#ifndef RTPROOF_WRITER_H
#define RTPROOF_WRITER_H

struct run;

/* 0 or -errno. */
int writer_start(struct run *run);

/* Takes what is left in the rings, writes the last checkpoint, ends the thread. */
void writer_finish(struct run *run);

#endif
