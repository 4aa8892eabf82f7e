/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of evidence, each written by a file of this folder: counters.c, files.c, threads.c. Only facts.c calls these
 * functions, in the order in which the record needs them.
 */
#ifndef RTPROOF_FACTS_KINDS_H
#define RTPROOF_FACTS_KINDS_H

#include "facts/kernel_counts.h"
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
	struct kernel_counts *kernel_counts; /* NULL: nobody asked why */
	int n_counters, kmsg_fd, kernel_lines;
	bool loads_read; /* their CPU time, at the first tick */
	struct rt_threads rt_threads;
	struct bytes rt_at_start;
	struct clock_pair clocks; /* when last looked at */
	struct system_part system[SYSTEM_PARTS];
};

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
