/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ring_open(struct ring *ring, uint32_t capacity)
{
	uint32_t size = 2;

	while (size < capacity)
		size *= 2;
	memset(ring, 0, sizeof(*ring));
	ring->entries = malloc(size * sizeof(*ring->entries));
	if (!ring->entries)
		return -ENOMEM;
	/* Touch every page now: the measuring thread must never fault. */
	memset(ring->entries, 0xff, size * sizeof(*ring->entries));
	ring->mask = size - 1;
	return 0;
}

void ring_close(struct ring *ring)
{
	free(ring->entries);
	ring->entries = NULL;
}

bool ring_pop(struct ring *ring, struct ring_entry *entry)
{
	uint32_t tail = ring->tail;

	if (tail == word_load(&ring->head))
		return false;
	*entry = ring->entries[tail & ring->mask];
	word_store(&ring->tail, tail + 1);
	return true;
}
