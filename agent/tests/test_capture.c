/* SPDX-License-Identifier: Apache-2.0 */
/* Where slices end: sums that outgrow 64 bits, and neighbours. What else a capture writes is in test_vector.c. */
#include "system/sys.h"

#include "measure/capture.h"

#include "check.h"
#include "decode.h"
#include "scratch.h"

#define PERIOD_NS 1000000LL

static struct capture capture;
static struct record record;

static void open_all(bool keep_samples)
{
	CHECK(record_open(&record, scratch_file()) == 0);
	capture_open(&capture, 3, true, keep_samples, PERIOD_NS, 250000);
}

static void run_once(int64_t value, uint32_t missed)
{
	const struct ring_entry entry = { value, missed, RING_SAMPLE };

	CHECK(capture_add(&capture, &record, &entry) == 0);
}

static void end_slice(void)
{
	CHECK(capture_flush(&capture, &record, true) == 0);
}

static void close_all(void)
{
	CHECK(record_close(&record) == 0);
	capture_close(&capture);
}

/* An hour without the thread: the lateness of all it missed adds up to more than a slice can hold. */
static void sums_that_outgrow_64_bits_are_cut_into_slices(void)
{
	const uint32_t missed = 6000000;
	struct chunk chunk;
	uint64_t count = 0;
	uint32_t slices = 0;

	open_all(true);
	run_once(missed * PERIOD_NS + 5, missed);
	end_slice();
	close_all();
	struct reader reader = read_whole(scratch_path);
	const uint8_t *start = reader.at;

	while (get_chunk(&reader, &chunk)) {
		if (chunk.type != CHUNK_SUMMARY || chunk.payload.at[2] != 1)
			continue;
		chunk.payload.at += 4 + 2 * 8;
		uint64_t n = get_number(&chunk.payload, 8), lost = get_number(&chunk.payload, 8);
		int64_t min = get_i64(&chunk.payload), max = get_i64(&chunk.payload), sum = get_i64(&chunk.payload);

		/* Lateness goes down by a period each, so a slice's sum is known. */
		CHECK(lost == 0 && max == (missed - (int64_t)count - 1) * PERIOD_NS + 5);
		CHECK(min == max - (int64_t)(n - 1) * PERIOD_NS);
		CHECK(sum > 0 && (double)sum > 0.999999 * (double)n * ((double)min + (double)max) / 2);
		CHECK((double)sum < 1.000001 * (double)n * ((double)min + (double)max) / 2);
		count += n;
		slices++;
	}
	CHECK(count == missed && slices > 1);
	free((void *)(uintptr_t)start);
}

/* A loop that skips no due time and has fallen behind for centuries: no slice's sum overflows. */
static void latencies_that_outgrow_64_bits_are_cut_into_slices(void)
{
	struct chunk chunk;
	uint32_t slices = 0;

	open_all(false);
	for (int i = 0; i < 5; i++)
		run_once(INT64_MAX / 2, 0);
	CHECK(capture_flush(&capture, &record, false) == 0); /* the slice goes on */
	end_slice();
	close_all();
	struct reader reader = read_whole(scratch_path);
	const uint8_t *start = reader.at;

	while (get_chunk(&reader, &chunk)) {
		if (chunk.type != CHUNK_SUMMARY)
			continue;
		chunk.payload.at += 4 + 2 * 8;
		int64_t n = get_i64(&chunk.payload);

		chunk.payload.at += 3 * 8;
		CHECK(get_i64(&chunk.payload) == n * (INT64_MAX / 2));
		CHECK(n == (slices < 2 ? 2 : 1));
		slices++;
	}
	CHECK(slices == 3);
	free((void *)(uintptr_t)start);
}

/* A long cycle in one slice and a short one in the next are no pair. */
static void a_slice_has_no_neighbours_in_the_one_before(void)
{
	open_all(false);
	run_once(0, 0);
	run_once(PERIOD_NS / 2, 0);
	end_slice();
	run_once(PERIOD_NS / 2, 0);
	run_once(0, 0);
	CHECK(capture.observed.pairs == 1 && capture.observed.catch_up_pairs == 0);
	close_all();
}

int main(void)
{
	sums_that_outgrow_64_bits_are_cut_into_slices();
	latencies_that_outgrow_64_bits_are_cut_into_slices();
	a_slice_has_no_neighbours_in_the_one_before();
	return EXIT_SUCCESS;
}
