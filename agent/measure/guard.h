/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard keeps a real-time loop from locking up the machine. It is a thread with a higher priority than the measuring
 * threads. It takes the real-time policy away from a thread that uses more than half a CPU for a second. The kernel's limit
 * on real-time CPU time is the second line of defence.
 */
#ifndef RTPROOF_GUARD_H
#define RTPROOF_GUARD_H

#include "measure/shared.h"

struct guard {
	struct run *run;
	pthread_t thread;
	uint32_t stop; /* a word that is read and written whole */
	bool runs;
	int priority;
};

/* 0 or -errno. Call before the measuring threads leave the gate. */
int guard_start(struct guard *guard, struct run *run);
void guard_stop(struct guard *guard);

#endif
