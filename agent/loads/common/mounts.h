/* SPDX-License-Identifier: Apache-2.0 */
/* Mount points where another machine or a program answers, and may never answer. */
#ifndef RTPROOF_MOUNTS_H
#define RTPROOF_MOUNTS_H

#include <stdbool.h>

/*
 * Turns the text of /proc/mounts, in its place, into a list of such mount points: each ended by a zero, the list by an empty
 * one. There must be room for two zeros behind the text.
 */
void mounts_keep_foreign(char *text);

/* Whether such a list has this path. */
bool mounts_hold(const char *list, const char *path);

#endif
