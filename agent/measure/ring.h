/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one measuring thread to the writer: one writer, one reader, no lock. Indices are 32-bit (ARMv5 has no wider atomics)
 * and are published with release and read with acquire. A full ring loses samples, counts them, and says so later.
 */
#ifndef RTPROOF_RING_H
#define RTPROOF_RING_H

#include "system/threads.h"

#include <stdbool.h>
#include <stdint.h>

struct ring_entry {
	int64_t value;   /* LOST: number of due times lost; DUE: due time of the next activation, from the origin */
	uint32_t missed; /* due times directly after this one that had no activation */
	uint32_t kind;   /* SAMPLE, LOST or DUE */
};

/* The samples of one activation, one for each field, stand together: all of them or none. */

enum { RING_SAMPLE, RING_LOST, RING_DUE };

struct ring {
	struct ring_entry *entries;
	uint32_t mask;
	uint32_t head; /* next to be written; owned by the measuring thread, after its end by the writer */
	uint32_t lost; /* due times not handed over yet; belongs to the owner of the head */
	char apart[64 - 12 - sizeof(void *)];
	uint32_t tail; /* next to be read; owned by the writer */
};

/* Capacity is rounded up to a power of two. 0 or -ENOMEM. */
int ring_open(struct ring *ring, uint32_t capacity);
void ring_close(struct ring *ring);

/* For the reader: a copy of the oldest entry, if there is one. */
bool ring_pop(struct ring *ring, struct ring_entry *entry);

static inline bool ring_put_all(struct ring *ring, const int64_t *values, uint32_t n, uint32_t missed, uint32_t kind)
{
	uint32_t head = ring->head;

	if (head - word_load(&ring->tail) + n - 1 > ring->mask)
		return false;
	for (uint32_t i = 0; i < n; i++)
		ring->entries[(head + i) & ring->mask] = (struct ring_entry){ values[i], missed, kind };
	word_store(&ring->head, head + n);
	return true;
}

static inline bool ring_put(struct ring *ring, int64_t value, uint32_t missed, uint32_t kind)
{
	return ring_put_all(ring, &value, 1, missed, kind);
}

/* Announces what was lost up to now. False, and nothing, while there is no room for that. For whoever owns the head. */
static inline bool ring_settle(struct ring *ring)
{
	if (ring->lost && ring_put(ring, ring->lost, 0, RING_LOST))
		ring->lost = 0;
	return !ring->lost;
}

/* For the measuring thread: never waits. What does not fit is lost and announced before the next sample that does. */
static inline void ring_push(struct ring *ring, const int64_t *values, uint32_t n, uint32_t missed)
{
	if (!ring_settle(ring) || !ring_put_all(ring, values, n, missed, RING_SAMPLE))
		ring->lost += 1 + missed;
}

#endif
