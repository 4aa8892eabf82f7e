/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "decode.h"

#include "top.h"

enum { STREAM = 20000, DUE_STEP = 1000 };

static int64_t stream[STREAM];

static int descending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* What TOP chunks told: all entries so far. */
struct told {
	int64_t values[STREAM];
	bool known[STREAM];
	uint32_t n;
};

static void tell(struct told *told, struct top *top)
{
	static int64_t columns[3][DECODE_MOST];
	struct bytes bytes = { 0 };

	if (!top_is_fresh(top)) {
		CHECK(!put_top(&bytes, top) && bytes.length == 0);
		return;
	}
	CHECK(put_top(&bytes, top));
	CHECK(!top_is_fresh(top));
	struct reader reader = { bytes.data, bytes.data + bytes.length };
	uint32_t n = get_packed(&reader, columns[0]);

	CHECK(n && n <= TOP_K && get_packed(&reader, columns[1]) == n && get_packed(&reader, columns[2]) == n);
	CHECK(reader.at == reader.end);
	for (uint32_t i = 0; i < n; i++) {
		int64_t index = columns[0][i];

		/* Every entry is one of the stream, and told once only. */
		CHECK(index >= 0 && index < STREAM && !told->known[index]);
		told->known[index] = true;
		CHECK(columns[1][i] == index * DUE_STEP && columns[2][i] == stream[index]);
		told->values[told->n++] = stream[index];
	}
	bytes_free(&bytes);
}

/* The largest of all that was told are the largest of the stream so far. */
static void compare(struct told *told, uint32_t so_far)
{
	static int64_t sorted[STREAM];
	uint32_t k = so_far < TOP_K ? so_far : TOP_K;

	memcpy(sorted, stream, so_far * sizeof(*sorted));
	qsort(sorted, so_far, sizeof(*sorted), descending);
	qsort(told->values, told->n, sizeof(*sorted), descending);
	CHECK(told->n >= k && memcmp(told->values, sorted, k * sizeof(*sorted)) == 0);
}

static void the_largest_of_a_stream_are_kept(uint32_t variety, uint64_t seed)
{
	static struct told told;
	struct top top = { .n = 0 };

	memset(&told, 0, sizeof(told));
	for (uint32_t i = 0; i < STREAM; i++) {
		stream[i] = (int64_t)random_below(&seed, variety) - variety / 2;
		top_add(&top, i, (int64_t)i * DUE_STEP, stream[i]);
		if (random_below(&seed, 1500))
			continue;
		tell(&told, &top);
		compare(&told, i + 1);
	}
	tell(&told, &top);
	compare(&told, STREAM);
}

static void of_equal_ones_the_first_stay(void)
{
	static struct told told;
	struct top top = { .n = 0 };

	memset(&told, 0, sizeof(told));
	for (uint32_t i = 0; i < 2 * TOP_K; i++) {
		stream[i] = 5;
		top_add(&top, i, (int64_t)i * DUE_STEP, 5);
	}
	tell(&told, &top);
	for (uint32_t i = 0; i < 2 * TOP_K; i++)
		CHECK(told.known[i] == (i < TOP_K));
}

int main(void)
{
	the_largest_of_a_stream_are_kept(1000000000, 1);
	the_largest_of_a_stream_are_kept(10000, 2);
	the_largest_of_a_stream_are_kept(50, 3); /* many ties */
	of_equal_ones_the_first_stay();
	return EXIT_SUCCESS;
}
