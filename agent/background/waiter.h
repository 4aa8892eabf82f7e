/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a run in the background, and sends it signals. */
#ifndef RTPROOF_BACKGROUND_WAITER_H
#define RTPROOF_BACKGROUND_WAITER_H

#include <stddef.h>

/*
 * Makes the folder, and starts this program once more with the arguments, which end with NULL. A process of a session of its
 * own, the waiter, waits for it and writes how it ended. Answers when the waiter has written the state. 0, or a negative
 * errno and why.
 */
int background_start(const char *folder, char **arguments, char *why, size_t room);

/*
 * A signal, one of int, term and kill, to the agent of that run; never to another process that has got its number. 0, or a
 * negative errno and why.
 */
int background_signal(const char *folder, const char *name, char *why, size_t room);

#endif
