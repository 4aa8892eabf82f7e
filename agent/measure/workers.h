/* SPDX-License-Identifier: Apache-2.0 */
/* All measuring threads of a run: start them, let them begin together, watch them, and collect what each says at its end. */
#ifndef RTPROOF_WORKERS_H
#define RTPROOF_WORKERS_H

#include "measure/shared.h"

/*
 * Starts the threads and waits until each has its policy and its CPU, or has failed to get them. 0, or -errno with the
 * reason as a sentence in why; those that were started wait at the gate either way.
 */
int workers_start(struct run *run, char *why, size_t room);

/* Sets the record's origin and lets them measure. */
void workers_release(struct run *run);

/* Ends threads that wait at the gate and shall not measure. */
void workers_dismiss(struct run *run);

/*
 * Asks the run to stop if one has found what its probe looked for, or has failed: that spoils the run, so the others need
 * not go on to its end.
 */
void workers_check(struct run *run);

/* The thread that calls it leaves the measured CPUs, if others are allowed. */
void workers_leave(const struct run *run);

/* How many of those that were started have ended. */
int workers_done(const struct run *run);

/* Asks each to end. */
void workers_stop(struct run *run);

/* Joins those that have ended. What another did not answer is an event; the process ends without it. */
int workers_collect(struct run *run, char *why, size_t room);

/* Frees what they had, unless one of them never came back. */
void workers_close(struct run *run);

#endif
