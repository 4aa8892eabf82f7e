/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at before anything is started: the file, the policy, what the trace can have, the room for the record. */
#ifndef RTPROOF_PREFLIGHT_H
#define RTPROOF_PREFLIGHT_H

#include <stddef.h>

struct run;

/*
 * 0, or a negative errno with the reason as a sentence in why. Plans the trace. Where the policy is refused and that is
 * allowed, the run's config has the usual one afterwards.
 */
int preflight(struct run *run, char *why, size_t room);

#endif
