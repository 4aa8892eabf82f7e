/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes evidence into the record: what the user asked for and what really happened, as facts, files and counters. Nothing
 * here judges. The thread that owns the record at the time calls these functions.
 */
#ifndef RTPROOF_FACTS_H
#define RTPROOF_FACTS_H

#include "facts/machine.h"
#include "facts/real_time.h"
#include "loads/common/running.h"
#include "measure/shared.h"

enum { COUNTERS_MOST = 512 };

struct counter {
	char name[64], path[128];
	struct running_load *load; /* or NULL: read the number in path */
};

struct facts {
	struct run *run;
	struct counter counters[COUNTERS_MOST];
	int n_counters, kmsg_fd, kernel_lines;
	bool loads_read; /* their CPU time, at the first tick */
	struct rt_threads rt_threads;
	struct bytes rt_at_start;
	struct clock_pair clocks; /* when last looked at */
	struct system_part system[SYSTEM_PARTS];
};

/* What the system granted of what the run asked for. */
struct granted {
	int guard_priority; /* 0: no guard runs */
	int dma_latency_fd; /* or -errno */
	int lock_error;     /* of locking memory: 0 or -errno */
	int64_t trace_seed;
};

/* Opens what will be read during the run: counters, kernel messages. */
void facts_open(struct facts *facts, struct run *run);
void facts_close(struct facts *facts);

/* BEGIN, SERIES, COUNTER and everything known before the first sample. */
void facts_at_start(struct facts *facts, const struct granted *granted);

/* Counters, kernel messages, and whether the threads still are what they should be. */
void facts_each_second(struct facts *facts);

/* The calling thread's own policy, priority and CPUs, as those of the writer. */
void facts_of_writer(struct run *run);

/* What the threads read about themselves, and the system once more. */
void facts_at_end(struct facts *facts);

/* END with the totals. */
void facts_finish(struct run *run);

/* What facts.c puts together. Each of the other files of this folder writes one kind of evidence. */

/* COUNTER: loads, temperatures, frequencies; later TICK: their present values. */
void facts_announce_counters(struct facts *facts);
void facts_tick(struct facts *facts);
void facts_of_loads(struct facts *facts, enum moment moment);

/* What the system says of itself; what may change while measuring at both ends. */
void facts_files_at_start(struct facts *facts);
void facts_files_at_end(struct facts *facts);

/* Other threads with a real-time policy: all of them at the start and at the end, and meanwhile those that are new. */
void facts_rt_threads(struct facts *facts, enum moment moment);

/* Policy and priority when first seen and when they change, asked from outside the thread. */
void facts_check_thread(struct run *run, struct worker *worker);

/* What a thread read about itself. */
void facts_of_worker(struct run *run, const struct worker *worker);

#endif
