/* SPDX-License-Identifier: Apache-2.0 */
/* Activations from the kernel's timerlat tracer, for the probe timerlat and for one method of the probe kernel. */
#ifndef RTPROOF_TIMERLAT_H
#define RTPROOF_TIMERLAT_H

#include "probes/probe.h"
#include "probes/timerlat/tracer.h"

/* irq, thread and, with a thread of ours, user. */
extern const char *const timerlat_fields[2][4];

/* As a probe's. */
int timerlat_open(struct worker *worker, enum tracer_task task, int64_t period_ns);
int timerlat_take(struct worker *worker, struct activation *activation);
bool timerlat_pending(struct worker *worker);
void timerlat_close(struct worker *worker);

#endif
