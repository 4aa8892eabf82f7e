/* SPDX-License-Identifier: Apache-2.0 */
/* tracefs: where it is, its files as text, and the agent's own instances and probes, whose names contain the agent's process id and start. */
#ifndef RTPROOF_TRACEFS_H
#define RTPROOF_TRACEFS_H

#include "system/undo.h"

#include <stdbool.h>

#define TRACEFS_OURS "rtproof-"
#define TRACEFS_EVENTS "rtproof_" /* as long */

enum { TRACEFS_PATH = 160, TRACEFS_TEXT = 4096 };

/* Where it is mounted: its folder in *root. 0 or -errno, -ENOENT if it is mounted nowhere. */
int tracefs_find(const char **root);

/*
 * As before, but mounted if need be, for this process and its children only: so only before it has threads. The mount goes with
 * the last of them.
 */
int tracefs_reach(const char **root);

/* PID_START: no two processes of a boot have the same, in one PID namespace. */
const char *tracefs_owner(void);

/* A free name for the instance of this process: in another container an agent may have the same process id. */
void tracefs_name_instance(const char *root, char path[TRACEFS_PATH]);

/* This process has the instance from now on; NULL: no more. */
void tracefs_take(const char *path);

/* The instance that this process has; "" without one. */
const char *tracefs_own(void);

/* The content of a file as a string, as far as it fits. 0 or -errno. */
int tracefs_read(const char *folder, const char *file, char text[TRACEFS_TEXT]);

/*
 * Adds an event of this process to uprobe_events or kprobe_events. kind: p where a place is reached, r where a function is left. What
 * follows a blank in place is for people. 0 or -errno.
 */
int tracefs_define(struct undo *undo, const char *file, const char *kind, const char *place, const char *name);

/*
 * Removes our instances whose agent is gone, for which no journal was left (system/undo.h). Whether any other one, or the top, is in
 * use, which `is_used` tells; it may be NULL.
 */
bool tracefs_in_use(const char *root, bool (*is_used)(const char *folder));

#endif
