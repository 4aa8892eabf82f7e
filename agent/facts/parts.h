/* SPDX-License-Identifier: Apache-2.0 */
/* What facts.c puts together: each part writes one kind of evidence. */
#ifndef RTPROOF_FACTS_PARTS_H
#define RTPROOF_FACTS_PARTS_H

#include "record/record.h"

struct run;
struct worker;

/* A fact of the whole run, or a number of a thread or of it. */
void fact(struct run *run, enum moment moment, const char *key, const char *value);
void fact_number(struct run *run, int thread, enum moment moment, const char *key, int64_t value);

/* The chunks BEGIN and SERIES. */
void facts_begin(struct run *run);
void facts_series(struct run *run);

/* The configuration, as it was asked for. */
void facts_asked(struct run *run);

/* COUNTER: loads, temperatures, frequencies; later TICK: their present values. */
void facts_announce_counters(struct run *run);
void facts_tick(struct run *run);
void facts_of_loads(struct run *run, enum moment moment);

/* What the system says of itself; what may change while measuring at both ends. */
void facts_files_at_start(struct run *run);
void facts_files_at_end(struct run *run);

/* Other threads with a real-time policy: all of them at the start and at the end, and meanwhile those that are new. */
void facts_rt_threads(struct run *run, enum moment moment);

/* Policy and priority when first seen and when they change, asked from outside the thread. */
void facts_check_thread(struct run *run, struct worker *worker);

/* What a thread read about itself. */
void facts_of_worker(struct run *run, const struct worker *worker);

#endif
