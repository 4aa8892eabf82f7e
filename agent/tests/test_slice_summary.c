/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/slice_summary.h"

#include "check.h"
#include "decode.h"

static const int64_t edges[] = { 0, 1, -1, 2, -2, INT32_MAX, INT32_MIN, 4294967296, INT64_MAX, INT64_MIN, INT64_MIN + 1 };

enum { EDGES = sizeof(edges) / sizeof(*edges) };

static struct wide product(int64_t a, int64_t b)
{
	struct wide sum = { 0, 0 };

	wide_add_product(&sum, a, b);
	return sum;
}

static bool same(struct wide a, uint64_t high, uint64_t low)
{
	return a.high == high && a.low == low;
}

/* Worked out by hand, for compilers that have no such type to compare with. */
static void products_that_are_known(void)
{
	CHECK(same(product(0, INT64_MIN), 0, 0));
	CHECK(same(product(-1, 1), UINT64_MAX, UINT64_MAX));
	CHECK(same(product(-1, -1), 0, 1));
	CHECK(same(product(INT64_MIN, INT64_MIN), 1ULL << 62, 0));
	CHECK(same(product(INT64_MAX, INT64_MAX), (1ULL << 62) - 1, 1));
	CHECK(same(product(INT64_MIN, INT64_MAX), UINT64_MAX - (1ULL << 62) + 1, 1ULL << 63));
	CHECK(same(product(4294967296, 4294967296), 1, 0));
	CHECK(same(product(-4294967296, 4294967296), UINT64_MAX, 0));
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 uint128;
__extension__ typedef __int128 int128;

static void products_are_those_of_the_compiler(void)
{
	uint64_t state = 21;
	struct wide sum = { 0, 0 };
	uint128 expected = 0;

	for (int i = 0; i < 200000; i++) {
		bool at_edge = i < EDGES * EDGES;
		int64_t a = at_edge ? edges[i / EDGES] : (int64_t)random_bits(&state) >> random_below(&state, 63);
		int64_t b = at_edge ? edges[i % EDGES] : (int64_t)random_bits(&state) >> random_below(&state, 63);

		wide_add_product(&sum, a, b);
		expected += (uint128)((int128)a * b);
		CHECK(same(sum, (uint64_t)(expected >> 64), (uint64_t)expected));
	}
}
#else
static void products_are_those_of_the_compiler(void)
{
}
#endif

/* a * (b + c) == a * b + a * c, with every compiler. */
static void products_are_distributive(void)
{
	uint64_t state = 22;

	for (int i = 0; i < 100000; i++) {
		int64_t a = (int64_t)random_bits(&state), b = (int64_t)random_bits(&state) / 2;
		int64_t c = (int64_t)random_bits(&state) / 2;
		struct wide parts = product(a, b), whole = product(a, b + c);

		wide_add_product(&parts, a, c);
		CHECK(same(parts, whole.high, whole.low));
	}
}

static void an_empty_summary_is_all_zero(void)
{
	struct summary summary = { .count = 0 };
	struct bytes bytes = { 0 };

	put_summary(&bytes, &summary);
	CHECK(!bytes.failed && bytes.length == 13 * 8 + 4);
	for (size_t i = 0; i < bytes.length; i++)
		CHECK(bytes.data[i] == 0);
	bytes_free(&bytes);
}

/* The payload's bins and counts must be these. */
static void expect_bins(struct reader *reader, const int32_t *bins, const uint32_t *counts, uint32_t n)
{
	int64_t bin = 0;

	CHECK(get_number(reader, 4) == n);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t step = get_varint(reader);

		bin = i ? bin + (int64_t)step : (int64_t)(step >> 1) ^ -(int64_t)(step & 1);
		CHECK(bin == bins[i]);
		CHECK(get_varint(reader) == counts[i]);
	}
	CHECK(reader->at == reader->end);
}

static void expect_numbers(struct reader *reader, const int64_t *numbers, int n)
{
	for (int i = 0; i < n; i++)
		CHECK(get_i64(reader) == numbers[i]);
}

static void a_slice_has_the_numbers_of_its_values(void)
{
	const int64_t values[] = { 1500, -3, 7, 7, 1500, 1501 };
	const int64_t numbers[] = {
		1000, 6000,		   /* first and last due time */
		6, 0,			   /* count, lost */
		-3, 1501, 4512,		   /* min, max, sum */
		2 * 1500 * 1500 + 1501 * 1501 + 2 * 49 + 9, 0,
		2, -4500 - 21, -1, 0,	   /* pairs, their products in two's complement, catch-up pairs */
	};
	const int32_t bins[] = { -3, 7, 1024 + 750 - 512 };
	const uint32_t counts[] = { 1, 2, 3 };
	struct summary summary = { .count = 0 };
	struct bytes bytes = { 0 };

	for (int i = 0; i < 6; i++)
		CHECK(summary_add(&summary, 1000 * (i + 1), values[i]) == 0);
	summary_add_pair(&summary, 1500, -3);
	summary_add_pair(&summary, -3, 7);
	put_summary(&bytes, &summary);
	struct reader reader = { bytes.data, bytes.data + bytes.length };

	expect_numbers(&reader, numbers, 13);
	expect_bins(&reader, bins, counts, 3);
	bytes_free(&bytes);
	hist_free(&summary.hist);
}

static void a_cleared_slice_begins_anew(void)
{
	const int64_t numbers[] = { 42, 42, 1, 0, -9, -9, -9, 81, 0, 0, 0, 0, 0 };
	const int32_t bin = -9;
	const uint32_t once = 1;
	struct summary summary = { .count = 0 };
	struct bytes bytes = { 0 };

	for (int i = 0; i < EDGES - 3; i++)
		CHECK(summary_add(&summary, i, edges[i]) == 0);
	summary_clear(&summary);
	CHECK(summary_add(&summary, 42, -9) == 0);
	put_summary(&bytes, &summary);
	struct reader reader = { bytes.data, bytes.data + bytes.length };

	expect_numbers(&reader, numbers, 13);
	expect_bins(&reader, &bin, &once, 1);
	bytes_free(&bytes);
	hist_free(&summary.hist);
}

enum { LAST_BIN = 1024 + 53 * 512 - 1, VALUES = 5000 };

/* Smallest and largest value of a bin, by turning the formula of docs/record-format.md around. */
static void edges_of_bin(int32_t bin, int64_t *low, int64_t *high)
{
	if (bin < 0) {
		edges_of_bin(-1 - bin, high, low);
		*low = -1 - *low;
		*high = -1 - *high;
		return;
	}
	int shift = bin < 1024 ? 0 : (bin - 1024) / 512 + 1;
	uint64_t step = bin < 1024 ? (uint64_t)bin : 512 + (uint64_t)(bin - 1024) % 512;

	*low = (int64_t)(step << shift);
	*high = (int64_t)(((step + 1) << shift) - 1);
}

static void every_bin_holds_exactly_its_values(void)
{
	int64_t low, high, before = INT64_MIN;

	for (int32_t bin = -1 - LAST_BIN; bin <= LAST_BIN; bin++) {
		edges_of_bin(bin, &low, &high);
		CHECK(low <= high && hist_bin(low) == bin && hist_bin(high) == bin && hist_top(bin) == high);
		CHECK(bin == -1 - LAST_BIN ? low == INT64_MIN : low == before + 1);
		before = high;

		/* Half the width, at the middle, is at most 1/1024 of any value in the bin. */
		uint64_t width = (uint64_t)high - (uint64_t)low + 1, least = (uint64_t)(low < 0 ? -1 - high : low);

		CHECK(width == 1 || (double)width / 2 <= (double)least / 1024);
	}
	CHECK(before == INT64_MAX);
	CHECK(LAST_BIN < HIST_PAGES * HIST_PAGE);
}

struct seen {
	int32_t bins[VALUES];
	uint32_t counts[VALUES];
	int n;
};

static void note(void *data, int32_t bin, uint32_t count)
{
	struct seen *seen = data;

	CHECK(seen->n < VALUES);
	CHECK(seen->n == 0 || bin > seen->bins[seen->n - 1]);
	seen->bins[seen->n] = bin;
	seen->counts[seen->n++] = count;
}

static uint32_t occurrences(const int64_t *values, int32_t bin)
{
	uint32_t n = 0;

	for (int i = 0; i < VALUES; i++)
		n += hist_bin(values[i]) == bin;
	return n;
}

static void counts_are_those_of_the_values(void)
{
	static int64_t values[VALUES] = { INT64_MIN, INT64_MAX, 0, -1, 1, 1023, 1024, -1024, -1025 };
	static struct seen seen;
	struct hist hist = { 0 };
	uint64_t state = 3, total = 0;

	for (int i = 9; i < VALUES; i++)
		values[i] = (int64_t)random_bits(&state) >> random_below(&state, 63);
	for (int i = 0; i < VALUES; i++)
		CHECK(hist_add(&hist, values[i]) == 0);
	hist_each(&hist, note, &seen);
	CHECK(seen.bins[0] == -1 - LAST_BIN && seen.bins[seen.n - 1] == LAST_BIN);
	for (int i = 0; i < seen.n; i++) {
		CHECK(seen.counts[i] == occurrences(values, seen.bins[i]));
		total += seen.counts[i];
	}
	CHECK(total == VALUES);

	hist_clear(&hist);
	seen.n = 0;
	hist_each(&hist, note, &seen);
	CHECK(seen.n == 0);
	CHECK(hist_add(&hist, 5) == 0);
	hist_each(&hist, note, &seen);
	CHECK(seen.n == 1 && seen.bins[0] == 5 && seen.counts[0] == 1);
	hist_free(&hist);
	for (int i = 0; i < HIST_PAGES; i++)
		CHECK(!hist.negative[i] && !hist.positive[i]);
}

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
	products_that_are_known();
	products_are_those_of_the_compiler();
	products_are_distributive();
	an_empty_summary_is_all_zero();
	a_slice_has_the_numbers_of_its_values();
	a_cleared_slice_begins_anew();
	every_bin_holds_exactly_its_values();
	counts_are_those_of_the_values();
	the_largest_of_a_stream_are_kept(1000000000, 1);
	the_largest_of_a_stream_are_kept(10000, 2);
	the_largest_of_a_stream_are_kept(50, 3); /* many ties */
	of_equal_ones_the_first_stay();
	return EXIT_SUCCESS;
}
