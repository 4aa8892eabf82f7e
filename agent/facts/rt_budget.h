/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel grants to real-time threads beside the sysctl: by control group (version 1), and less what its fair server takes. */
#ifndef RTPROOF_RT_BUDGET_H
#define RTPROOF_RT_BUDGET_H

#include "record/bytes.h"

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
