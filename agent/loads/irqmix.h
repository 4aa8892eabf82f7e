/* SPDX-License-Identifier: Apache-2.0 */
/* Which step the load irqmix takes next. The seed alone decides, so a run can be repeated. */
#ifndef RTPROOF_IRQMIX_H
#define RTPROOF_IRQMIX_H

#include "loads/load.h"

enum irqmix_kind {
	MIX_TIMERS,   /* a burst of timer interrupts */
	MIX_MIGRATE,  /* moves to other CPUs: interrupts between processors, work of the migration threads */
	MIX_BARRIER,  /* memory barriers on all CPUs that run this load */
	MIX_PROTECT,  /* page tables changed while another CPU uses them */
	MIX_DISCARD,  /* pages given back, likewise */
	MIX_SIGNALS,  /* signals to a thread that is busy elsewhere */
	MIX_PACKETS,  /* datagrams over 127.0.0.1 */
	MIX_DISK,     /* a block written to the medium */
	MIX_KINDS,
};

struct irqmix_step {
	enum irqmix_kind kind;
	uint32_t amount; /* 1 to 16: how often in a row */
	uint32_t choice; /* random; what the step needs besides */
};

/* A state that differs for each seed and worker, never 0. */
static inline uint32_t irqmix_start(uint32_t seed, uint32_t worker)
{
	uint32_t state = (seed + 1) * 2654435761U ^ worker * 2246822519U;

	return state ? state : LOAD_SEED;
}

/* Writing to the medium takes longest by far, so it comes once for 16 of each other kind. */
static inline struct irqmix_step irqmix_next(uint32_t *state)
{
	uint32_t kind = (load_random(state) >> 8) % (16 * MIX_DISK + 1) / 16, amount = 1 + (load_random(state) >> 8) % 16;

	return (struct irqmix_step){ (enum irqmix_kind)kind, amount, load_random(state) >> 8 };
}

#endif
