/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "decode.h"

#include "summary.h"

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

int main(void)
{
	products_that_are_known();
	products_are_those_of_the_compiler();
	products_are_distributive();
	an_empty_summary_is_all_zero();
	a_slice_has_the_numbers_of_its_values();
	a_cleared_slice_begins_anew();
	return EXIT_SUCCESS;
}
