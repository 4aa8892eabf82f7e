/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that ask the agent to end, and that of its children, as a file to read from. */
#ifndef RTPROOF_SIGNALS_H
#define RTPROOF_SIGNALS_H

#include <stddef.h>

/*
 * SIGINT, SIGTERM, SIGHUP and SIGCHLD of every thread; SIGALRM, SIGPIPE and SIGXFSZ disturb nobody any more. Or -errno with the reason as a
 * sentence in why.
 */
int signals_open(char *why, size_t room);

#endif
