/* SPDX-License-Identifier: Apache-2.0 */
/* What the main thread does while others measure: it watches signals, loads, the host and the time. */
#ifndef RTPROOF_SUPERVISE_H
#define RTPROOF_SUPERVISE_H

#include "measure/shared.h"
#include "trace/trace.h"

/* Until each thread has ended, or has been asked to for long enough. */
void supervise(struct run *run, struct trace *trace, int signal_fd);

/* A load that has ended by itself spoils the run. */
void supervise_loads(struct run *run);

#endif
