/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the system with a real-time policy, but for the agent's own: who may run before what is measured. */
#ifndef RTPROOF_RT_THREADS_H
#define RTPROOF_RT_THREADS_H

#include "record/bytes.h"

/* What was told of already. All zero: nothing. */
struct rt_threads {
	struct bytes seen; /* of each: thread, policy, priority */
	int64_t next_ns;   /* when it is time to look again */
};

/*
 * Appends a line of names and a line for each thread: all, or those that are new or have another policy or priority than they
 * had. Appends nothing where there is none to tell of. Looks at the whole of /proc: some 10 us for each thread.
 */
void rt_threads_collect(struct rt_threads *told, bool all, struct bytes *lines);

/* The same for what is new, but only once a second, and never for more than a hundredth of the time. */
void rt_threads_each_second(struct rt_threads *told, struct bytes *lines);

void rt_threads_free(struct rt_threads *told);

#endif
