/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "measure/ring.h"

#include <pthread.h>
#include <sched.h>

/* What a reader of the ring knows: every due time up to next was obtained, missed or lost. */
struct account {
	uint64_t next, obtained, missed, lost;
};

/* A sample's value is its own index, so an entry out of place is seen. */
static void book(struct account *account, const struct ring_entry *entry)
{
	CHECK(entry->kind == RING_SAMPLE || entry->kind == RING_LOST);
	if (entry->kind == RING_LOST) {
		CHECK(entry->value > 0 && entry->missed == 0);
		account->lost += (uint64_t)entry->value;
		account->next += (uint64_t)entry->value;
		return;
	}
	CHECK(entry->value == (int64_t)account->next);
	account->obtained++;
	account->missed += entry->missed;
	account->next += 1 + (uint64_t)entry->missed;
}

static void book_all(struct account *account, struct ring *ring)
{
	struct ring_entry entry;

	while (ring_pop(ring, &entry))
		book(account, &entry);
}

static void push(struct ring *ring, int64_t value, uint32_t missed)
{
	ring_push(ring, &value, 1, missed);
}

static void capacity_is_a_power_of_two(void)
{
	const uint32_t asked[] = { 0, 1, 2, 3, 100, 256, 257 }, got[] = { 2, 2, 2, 4, 128, 256, 512 };

	for (int i = 0; i < 7; i++) {
		struct ring ring;
		uint32_t n = 0;

		CHECK(ring_open(&ring, asked[i]) == 0);
		CHECK(ring.mask + 1 == got[i]);
		while (ring_put(&ring, n, 0, RING_SAMPLE))
			n++;
		CHECK(n == got[i]);
		ring_close(&ring);
		CHECK(!ring.entries);
	}
}

static void entries_come_out_as_they_went_in(void)
{
	struct ring ring;
	struct ring_entry entry;

	CHECK(ring_open(&ring, 4) == 0);
	CHECK(!ring_pop(&ring, &entry));
	CHECK(ring_put(&ring, INT64_MIN, 7, RING_SAMPLE));
	CHECK(ring_put(&ring, INT64_MAX, 0, RING_DUE));
	CHECK(ring_pop(&ring, &entry));
	CHECK(entry.value == INT64_MIN && entry.missed == 7 && entry.kind == RING_SAMPLE);
	CHECK(ring_pop(&ring, &entry));
	CHECK(entry.value == INT64_MAX && entry.missed == 0 && entry.kind == RING_DUE);
	CHECK(!ring_pop(&ring, &entry));
	ring_close(&ring);
}

/* Pushes until the due time n; some are missed. */
static void push_until(struct ring *ring, uint64_t *index, uint64_t n, uint64_t *state)
{
	while (*index < n) {
		uint32_t missed = random_below(state, 10) ? 0 : random_below(state, 1000);

		if (missed > n - 1 - *index)
			missed = (uint32_t)(n - 1 - *index);
		push(ring, (int64_t)*index, missed);
		*index += 1 + (uint64_t)missed;
	}
}

static void every_due_time_is_accounted_for(void)
{
	uint64_t state = 11;

	for (int round = 0; round < 500; round++) {
		struct ring ring;
		struct account account = { 0 };
		uint64_t index = 0;

		CHECK(ring_open(&ring, 1 + random_below(&state, 64)) == 0);
		for (int step = 0; step < 50; step++) {
			push_until(&ring, &index, index + 1 + random_below(&state, 100), &state);
			if (random_below(&state, 3))
				book_all(&account, &ring);
		}
		book_all(&account, &ring);
		CHECK(ring_settle(&ring));
		book_all(&account, &ring);
		CHECK(account.next == index);
		CHECK(account.obtained + account.missed + account.lost == index);
		ring_close(&ring);
	}
}

enum { STRESS = 3000000 };

struct stress {
	struct ring ring;
	uint32_t done;
};

static void *produce(void *argument)
{
	struct stress *stress = argument;
	uint64_t index = 0, state = 12;

	for (uint64_t n = 1000; n <= STRESS; n += 1000) {
		push_until(&stress->ring, &index, n, &state);
		sched_yield();
	}
	word_store(&stress->done, 1);
	return NULL;
}

/* Two threads on a small ring, the reader sometimes slow: ThreadSanitizer watches, and the account must balance. */
static void two_threads_agree(void)
{
	static struct stress stress;
	struct account account = { 0 };
	uint64_t state = 13;
	pthread_t producer;
	bool last = false;

	CHECK(ring_open(&stress.ring, 256) == 0);
	CHECK(pthread_create(&producer, NULL, produce, &stress) == 0);
	while (!last) {
		last = word_load(&stress.done);
		book_all(&account, &stress.ring);
		for (uint32_t i = random_below(&state, 20); i; i--)
			sched_yield();
	}
	CHECK(pthread_join(producer, NULL) == 0);
	ring_settle(&stress.ring);
	book_all(&account, &stress.ring);
	CHECK(account.next == STRESS);
	CHECK(account.obtained + account.missed + account.lost == STRESS);
	CHECK(account.obtained > 0);
	ring_close(&stress.ring);
}

int main(void)
{
	capacity_is_a_power_of_two();
	entries_come_out_as_they_went_in();
	every_due_time_is_accounted_for();
	two_threads_agree();
	return EXIT_SUCCESS;
}
