/* SPDX-License-Identifier: Apache-2.0 */
/* Where threads wait for each other and for the origin of time. */
#ifndef RTPROOF_GATE_H
#define RTPROOF_GATE_H

#include <pthread.h>
#include <stdint.h>

struct gate {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int ready;         /* threads that are set up, or have failed to */
	int64_t origin_ns; /* CLOCK_MONOTONIC of the origin; 0: not open yet */
	int done_fd;       /* a byte is written here when a measuring thread ends */
};

void gate_init(struct gate *gate, int done_fd);

/* Says that one more thread is ready. */
void gate_arrive(struct gate *gate);

/* Waits for n threads to arrive. */
void gate_await(struct gate *gate, int n);

void gate_open(struct gate *gate, int64_t origin_ns);

/* Waits until the gate is open; answers the origin. */
int64_t gate_pass(struct gate *gate);

#endif
