/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper is a process that watches over one load: a program of the system, or a load that is restarted in rounds. The
 * keeper starts the load, starts it again, counts its work and enforces its limits. When the agent ends, for whatever
 * reason, the keeper ends every process that the load has started.
 */
#ifndef RTPROOF_KEEPER_H
#define RTPROOF_KEEPER_H

#include "loads/common/running.h"

/* Whether a load needs one. */
bool keeper_needed(const struct running_load *running);

/*
 * Starts it. A program's keeper is the first process of a PID namespace where that can be had, so that nothing outlives it even
 * if it is killed. Its process id, which is also its group, or a negative
 * errno. SIGTERM ends it.
 */
pid_t keeper_start(struct running_load *running);

/* What a keeper that was killed could not end. */
void keeper_bury(pid_t keeper);

#endif
