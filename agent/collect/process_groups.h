/* SPDX-License-Identifier: Apache-2.0 */
/* What the control groups of a process, and those above them, grant it of the CPUs. */
#ifndef RTPROOF_PROCESS_GROUPS_H
#define RTPROOF_PROCESS_GROUPS_H

#include "record/bytes.h"

/* Lines "PATH VALUE" of the files of its groups, from its own up to the root. Of cpu.stat the value is that of nr_throttled. */
int collect_process_groups(struct bytes *text, int pid);

/* The same. mounts: the text of /proc/mounts; groups: that of /proc/PID/cgroup; both are cut up. */
int put_groups(struct bytes *text, char *mounts, char *groups);

#endif
