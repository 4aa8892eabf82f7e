/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that ask the agent to end, and that of its children, as a file to read from. */
#ifndef RTPROOF_SIGNALS_H
#define RTPROOF_SIGNALS_H

/* SIGINT, SIGTERM, SIGHUP and SIGCHLD of every thread; SIGALRM, SIGPIPE and SIGXFSZ disturb nobody any more. -errno: none. */
int signals_open(void);

#endif
