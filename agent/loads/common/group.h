/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A control group (version 2) that limits a program. The kernel counts memory, processes and threads, and refuses what
 * exceeds the limits. Where no group can be made, the keeper counts a few times a second.
 */
#ifndef RTPROOF_GROUP_H
#define RTPROOF_GROUP_H

#include "system/folder.h"

#include <stdbool.h>

struct group_limits {
	int64_t bytes, processes;
};

/*
 * Makes a group below the nearest one, from that of this process upwards, that hands on both controllers, and tries whether a
 * process can join it. Its folder has a cleaner, which kills what is left in it and removes it. 0 or a negative errno.
 */
int group_open(struct folder *group, const struct group_limits *limits);

/* Removes the groups that agents left behind there, with the processes in them, as folder_sweep() does with folders. */
void group_sweep(void);

/* The calling process, with all that it starts from now on. 0 or a negative errno. */
int group_join(const struct folder *group);

/* What the kernel has refused or killed in it for its limits. */
bool group_lacked_processes(const struct folder *group);
bool group_lacked_memory(const struct folder *group);

#endif
