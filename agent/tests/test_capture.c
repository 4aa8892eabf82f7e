/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of entries goes through a capture into a record, and a model that only knows the stream says what must be in it. */
#include "system/sys.h"

#include "measure/capture.h"

#include "check.h"
#include "decode.h"
#include "scratch.h"

enum { MOST = 20000, SLICES_MOST = 200, SECONDS_MOST = 4000, SERIES = 3 };

#define PERIOD_NS 1000000LL

struct ran {
	uint64_t index;
	int64_t due_ns, value;
	uint32_t missed;
	bool behind_hole; /* or the first of its slice: no neighbour before it */
	int slice;
};

struct model {
	bool by_period, external, keep_samples;
	struct ran ran[MOST];
	uint32_t n;
	uint64_t index, lost_in_slice[SLICES_MOST];
	int64_t due_ns;
	int slice;
	bool hole;
};

static struct model model;
static struct capture capture;
static struct record record;

static void feed(int64_t value, uint32_t missed, uint32_t kind)
{
	const struct ring_entry entry = { value, missed, kind };

	CHECK(capture_add(&capture, &record, &entry) == 0);
}

static void lose(int64_t n, int64_t late_ns)
{
	feed(n, 0, RING_LOST);
	model.lost_in_slice[model.slice] += (uint64_t)n;
	model.index += (uint64_t)n;
	model.due_ns += n * PERIOD_NS;
	model.hole = true;
	if (model.by_period && !model.external)
		return;
	/* Off the grid, and from outside, only the measuring thread knows where it is behind a hole. */
	model.due_ns += late_ns;
	feed(model.due_ns, 0, RING_DUE);
}

static void run_once(int64_t value, uint32_t missed)
{
	CHECK(model.n < MOST);
	model.ran[model.n++] = (struct ran){ model.index, model.due_ns, value, missed, model.hole, model.slice };
	model.hole = false;
	feed(value, missed, RING_SAMPLE);
	model.index += 1 + (uint64_t)missed;
	model.due_ns += PERIOD_NS + (model.by_period ? missed * PERIOD_NS : value);
}

static void end_slice(void)
{
	CHECK(capture_flush(&capture, &record, true) == 0);
	CHECK(++model.slice < SLICES_MOST);
	model.hole = true;
}

/* Mostly some hundred microseconds, sometimes early, sometimes so late that others are missed, once for minutes. */
static void stream(uint64_t state)
{
	lose(1 + random_below(&state, 3), 0);
	for (int i = 0; i < MOST - 1; i++) {
		int64_t value = (int64_t)random_below(&state, 600000);

		if (random_below(&state, 50) == 0)
			value = -(int64_t)random_below(&state, 300000);
		if (random_below(&state, 300) == 0)
			value = random_below(&state, 2000000000);
		if (i == MOST / 2)
			value = 300000000000 + 17;
		run_once(value, value > 0 ? (uint32_t)(value / PERIOD_NS) : 0);
		if (random_below(&state, 700) == 0)
			lose(1 + random_below(&state, 500), random_below(&state, 1000000));
		if (random_below(&state, 900) == 0)
			end_slice();
	}
	end_slice();
	end_slice(); /* nothing new: nothing to write */
}

/* What was read back. */
struct found {
	uint32_t samples, slices[2], top;
	uint64_t next_index;
	struct second seconds[SECONDS_MOST];
	bool in_top[MOST];
	int64_t top_values[MOST];
};

static struct found found;
static int64_t columns[3][DECODE_MOST];

static void expect_head(struct reader *reader, uint64_t second)
{
	CHECK(get_number(reader, 2) == SERIES);
	CHECK(get_number(reader, 2) == second);
}

/* A block goes on without a hole, and the samples in it lie where the page says. */
static void check_samples(struct reader *reader)
{
	expect_head(reader, 0);
	uint64_t index = get_number(reader, 8);
	int64_t due_ns = get_i64(reader);
	uint32_t n = get_packed(reader, columns[0]), gaps = get_packed(reader, columns[1]), gap = 0;

	CHECK(get_packed(reader, columns[2]) == gaps && reader->at == reader->end);
	CHECK(n > 0 && n <= CAPTURE_BLOCK);
	for (uint32_t i = 0; i < n; i++) {
		bool has_gap = gap < gaps && columns[1][gap] == i;
		int64_t missed = has_gap ? columns[2][gap++] : 0;
		const struct ran *ran = &model.ran[found.samples++];

		CHECK(found.samples <= model.n);
		CHECK(ran->index == index && ran->due_ns == due_ns);
		CHECK(ran->value == columns[0][i] && ran->missed == missed);
		index += 1 + (uint64_t)missed;
		due_ns += PERIOD_NS + (model.by_period ? missed * PERIOD_NS : columns[0][i]);
	}
	CHECK(gap == gaps);
}

static void check_seconds(struct reader *reader)
{
	expect_head(reader, 0);
	uint32_t first = (uint32_t)get_number(reader, 4), n = get_packed(reader, columns[0]);

	CHECK(get_packed(reader, columns[1]) == n && get_packed(reader, columns[2]) == n && reader->at == reader->end);
	CHECK(n > 0 && first + n <= SECONDS_MOST);
	for (uint32_t i = 0; i < n; i++) {
		struct second *second = &found.seconds[first + i];

		if (columns[0][i] && (!second->obtained || columns[2][i] > second->max))
			second->max = columns[2][i];
		second->obtained += columns[0][i];
		second->missed += columns[1][i];
	}
}

static void check_top(struct reader *reader)
{
	expect_head(reader, TOP_K);
	uint32_t n = get_packed(reader, columns[0]), at = 0;

	CHECK(get_packed(reader, columns[1]) == n && get_packed(reader, columns[2]) == n && reader->at == reader->end);
	for (uint32_t i = 0; i < n; i++) {
		for (at = 0; at < model.n && model.ran[at].index != (uint64_t)columns[0][i]; at++)
			;
		CHECK(at < model.n && !found.in_top[at]);
		CHECK(model.ran[at].due_ns == columns[1][i] && model.ran[at].value == columns[2][i]);
		found.in_top[at] = true;
		found.top_values[found.top++] = columns[2][i];
	}
}

/* The same three activations in a row that the page speaks of. */
static bool catches_up(const struct ran *third)
{
	const struct ran *second = third - 1, *first = third - 2;
	int64_t long_ns = second->due_ns + second->value - first->due_ns - first->value;
	int64_t short_ns = third->due_ns + third->value - second->due_ns - second->value;

	return (double)long_ns > 1.2 * PERIOD_NS && (double)short_ns < 0.8 * PERIOD_NS;
}

static void expect_pairs(struct summary *expected, uint32_t i)
{
	const struct ran *ran = &model.ran[i];

	if (ran->behind_hole)
		return;
	expected->pairs++;
	wide_add_product(&expected->sum_products, ran[-1].value, ran->value);
	if (!ran[-1].behind_hole)
		expected->catch_up_pairs += catches_up(ran);
}

static void expect_observed(struct summary *expected, int slice)
{
	expected->lost = model.lost_in_slice[slice];
	for (uint32_t i = 0; i < model.n; i++) {
		if (model.ran[i].slice != slice)
			continue;
		CHECK(summary_add(expected, model.ran[i].due_ns, model.ran[i].value) == 0);
		expect_pairs(expected, i);
	}
}

static void expect_charged(struct summary *expected, int slice)
{
	for (uint32_t i = 0; i < model.n; i++)
		for (uint32_t j = 1; model.ran[i].slice == slice && j <= model.ran[i].missed; j++)
			CHECK(summary_add(expected, model.ran[i].due_ns + j * PERIOD_NS,
					  model.ran[i].value - j * PERIOD_NS) == 0);
}

/* Slices are written in order; those without anything in them are not. */
static void check_summary(struct reader *reader)
{
	struct summary expected = { .count = 0 };
	struct bytes bytes = { 0 };

	CHECK(get_number(reader, 2) == SERIES);
	uint64_t view = get_number(reader, 1);

	CHECK(view <= 1 && get_number(reader, 1) == 0);
	while (!expected.count && !expected.lost) {
		CHECK(found.slices[view] < (uint32_t)model.slice);
		(view ? expect_charged : expect_observed)(&expected, (int)found.slices[view]++);
	}
	put_summary(&bytes, &expected);
	CHECK((size_t)(reader->end - reader->at) == bytes.length && !memcmp(reader->at, bytes.data, bytes.length));
	bytes_free(&bytes);
	hist_free(&expected.hist);
}

static void check_chunks(void)
{
	struct reader reader = read_whole(scratch_path);
	const uint8_t *start = reader.at;
	struct chunk chunk;
	uint32_t n = 0;

	memset(&found, 0, sizeof(found));
	for (; get_chunk(&reader, &chunk); n++) {
		CHECK(chunk.sequence == n);
		if (chunk.type == CHUNK_SAMPLES)
			check_samples(&chunk.payload);
		else if (chunk.type == CHUNK_SECONDS)
			check_seconds(&chunk.payload);
		else if (chunk.type == CHUNK_TOP)
			check_top(&chunk.payload);
		else if (chunk.type == CHUNK_SUMMARY)
			check_summary(&chunk.payload);
		else
			CHECK(!"a type that a capture writes");
	}
	free((void *)(uintptr_t)start);
}

static void check_each_second(void)
{
	static struct second expected[SECONDS_MOST];

	memset(expected, 0, sizeof(expected));
	for (uint32_t i = 0; i < model.n; i++) {
		const struct ran *ran = &model.ran[i];
		struct second *second = &expected[ran->due_ns / NS_PER_SECOND];

		if (!second->obtained++ || ran->value > second->max)
			second->max = ran->value;
		for (uint32_t j = 1; j <= ran->missed; j++)
			expected[(ran->due_ns + j * PERIOD_NS) / NS_PER_SECOND].missed++;
	}
	CHECK(memcmp(expected, found.seconds, sizeof(expected)) == 0);
}

static void check_totals(void)
{
	uint64_t missed = 0, lost = 0;
	int64_t min = INT64_MAX, max = INT64_MIN;

	for (uint32_t i = 0; i < model.n; i++) {
		missed += model.ran[i].missed;
		min = model.ran[i].value < min ? model.ran[i].value : min;
		max = model.ran[i].value > max ? model.ran[i].value : max;
	}
	for (int i = 0; i < model.slice; i++)
		lost += model.lost_in_slice[i];
	CHECK(capture.obtained == model.n && capture.missed == missed && capture.lost == lost);
	CHECK(capture.obtained + capture.missed + capture.lost == model.index);
	CHECK(capture.min == min && capture.max == max && capture.last == model.ran[model.n - 1].value);
}

static int descending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

static void check_largest(void)
{
	static int64_t values[MOST];

	for (uint32_t i = 0; i < model.n; i++)
		values[i] = model.ran[i].value;
	qsort(values, model.n, sizeof(*values), descending);
	qsort(found.top_values, found.top, sizeof(*values), descending);
	CHECK(found.top >= TOP_K && !memcmp(values, found.top_values, TOP_K * sizeof(*values)));
}

static void open_all(bool by_period, bool keep_samples)
{
	memset(&model, 0, sizeof(model));
	model.by_period = by_period;
	model.keep_samples = keep_samples;
	model.due_ns = 250000;
	model.hole = true;
	CHECK(record_open(&record, scratch_file()) == 0);
	capture_open(&capture, SERIES, by_period, keep_samples, PERIOD_NS, model.due_ns);
}

static void close_all(void)
{
	CHECK(record_close(&record) == 0);
	capture_close(&capture);
}

static void the_record_holds_what_the_model_says(bool by_period, bool external, bool keep_samples)
{
	open_all(by_period, keep_samples);
	model.external = external;
	stream(31 + by_period);
	check_totals();
	close_all();
	check_chunks();
	CHECK(found.samples == (keep_samples ? model.n : 0));
	check_each_second();
	CHECK(found.slices[0] >= 10 && found.slices[1] >= 10);
	check_largest();
}

/* An hour without the thread: the lateness of all it missed adds up to more than a slice can hold. */
static void sums_that_outgrow_64_bits_are_cut_into_slices(void)
{
	const uint32_t missed = 6000000;
	struct chunk chunk;
	uint64_t count = 0;
	uint32_t slices = 0;

	open_all(true, true);
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

	open_all(true, false);
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

int main(void)
{
	the_record_holds_what_the_model_says(true, false, true);
	the_record_holds_what_the_model_says(true, true, true);
	the_record_holds_what_the_model_says(false, false, true);
	the_record_holds_what_the_model_says(true, false, false);
	sums_that_outgrow_64_bits_are_cut_into_slices();
	latencies_that_outgrow_64_bits_are_cut_into_slices();
	return EXIT_SUCCESS;
}
