/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's threads with a real-time policy, without the agent's own, because they may run before what is measured; and
 * how much CPU time the kernel grants to such threads.
 */
#ifndef RTPROOF_REAL_TIME_H
#define RTPROOF_REAL_TIME_H

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

/*
 * The budget: what the kernel grants to real-time threads beside the sysctl, by control group (version 1), and less what its fair
 * server takes.
 */

/*
 * Lines "PATH RUNTIME_US PERIOD_US" of the own control group and each above it, the own one first. mounts: the text of
 * /proc/mounts; groups: that of /proc/self/cgroup; both are cut up. 0, or -ENOENT where there is no such budget.
 */
int rt_budget_groups(char *mounts, char *groups, struct bytes *lines);

/* The same of this process. */
int rt_budget_own(struct bytes *lines);

/* Lines "cpuN RUNTIME_NS PERIOD_NS" of the fair server. 0 or -ENOENT. */
int rt_budget_fair_server(struct bytes *lines);

/* Why a real-time policy was refused, as far as the budget explains it: a clause, or "". */
void rt_budget_explain(char *why, size_t room);

#endif
