/* SPDX-License-Identifier: Apache-2.0 */
/* Products at the edges of 128 bits, and the largest of equal values. What else a slice has is in test_vector.c. */
#include "measure/slice_summary.h"

#include "check.h"

static void expect_product(int64_t a, int64_t b, uint64_t high, uint64_t low)
{
	struct wide sum = { 0, 0 };

	wide_add_product(&sum, a, b);
	CHECK(sum.high == high && sum.low == low);
}

static void products_that_are_known(void)
{
	expect_product(0, INT64_MIN, 0, 0);
	expect_product(-1, 1, UINT64_MAX, UINT64_MAX);
	expect_product(INT64_MIN, INT64_MIN, 1ULL << 62, 0);
	expect_product(INT64_MAX, INT64_MAX, (1ULL << 62) - 1, 1);
	expect_product(INT64_MIN, INT64_MAX, UINT64_MAX - (1ULL << 62) + 1, 1ULL << 63);
	expect_product(-4294967296, 4294967296, UINT64_MAX, 0);
}

static void of_equal_ones_the_first_stay(void)
{
	static struct top top;

	for (uint32_t i = 0; i < 2 * TOP_K; i++)
		top_add(&top, i, i, 5);
	CHECK(top.n == TOP_K);
	for (uint32_t i = 0; i < TOP_K; i++)
		CHECK(top.entries[i].index < TOP_K);
}

int main(void)
{
	products_that_are_known();
	of_equal_ones_the_first_stay();
	return EXIT_SUCCESS;
}
