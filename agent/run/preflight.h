/* SPDX-License-Identifier: Apache-2.0 */
/* The checks before anything starts: the output file, the scheduling policy, the trace, and the room for the record. */
#ifndef RTPROOF_PREFLIGHT_H
#define RTPROOF_PREFLIGHT_H

#include "measure/config.h"
#include "trace/plan.h"

/*
 * 0, or a negative errno with the reason as a sentence in why. Plans the trace. Where the policy is refused and that is
 * allowed, the config has the usual one afterwards.
 */
int preflight(struct config *config, struct trace_plan *trace, char *why, size_t room);

#endif
