/* SPDX-License-Identifier: Apache-2.0 */
/* The control group (v2) of this process. */
#ifndef RTPROOF_CONTROL_GROUP_H
#define RTPROOF_CONTROL_GROUP_H

#include <stddef.h>
#include <sys/types.h>

enum { CONTROL_GROUP_PATH = 256 };

/* Its folder, and how long the part of the path is that is the root of all groups. 0 or -errno. */
int control_group_find(char path[CONTROL_GROUP_PATH], size_t *root_length);

/*
 * Moves a process (0: this one) as far up as it may go, so that it outlives a kill of the whole group. Where that is refused, it
 * stays.
 */
void control_group_leave(pid_t pid);

#endif
