/* SPDX-License-Identifier: Apache-2.0 */
#include "summary.h"

#include <stdbool.h>
#include <string.h>

static void wide_add(struct wide *sum, uint64_t low, uint64_t high)
{
	sum->low += low;
	sum->high += high + (sum->low < low);
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static struct wide multiply(uint64_t a, uint64_t b)
{
	uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
	struct wide product = { a_low * b_low, a_high * b_high };
	uint64_t middle = a_low * b_high, other = a_high * b_low;

	wide_add(&product, middle << 32, middle >> 32);
	wide_add(&product, other << 32, other >> 32);
	return product;
}

void wide_add_product(struct wide *sum, int64_t a, int64_t b)
{
	struct wide product = multiply(magnitude(a), magnitude(b));

	if ((a < 0) == (b < 0))
		wide_add(sum, product.low, product.high);
	else
		wide_add(sum, 0 - product.low, ~product.high + (product.low == 0));
}

int summary_add(struct summary *summary, int64_t due_ns, int64_t value)
{
	bool first = summary->count == 0;

	if (first || value < summary->min)
		summary->min = value;
	if (first || value > summary->max)
		summary->max = value;
	if (first)
		summary->first_due_ns = due_ns;
	summary->last_due_ns = due_ns;
	summary->count++;
	summary->sum += value;
	wide_add_product(&summary->sum_squares, value, value);
	return hist_add(&summary->hist, value);
}

void summary_add_pair(struct summary *summary, int64_t before, int64_t value)
{
	summary->pairs++;
	wide_add_product(&summary->sum_products, before, value);
}

void summary_clear(struct summary *summary)
{
	struct hist pages = summary->hist;

	memset(summary, 0, sizeof(*summary));
	summary->hist = pages;
	hist_clear(&summary->hist);
}

/* Bins go out as differences; the first one needs its sign. */
struct bin_writer {
	struct bytes *bytes;
	int32_t before;
	uint32_t n;
};

static void put_bin(void *data, int32_t bin, uint32_t count)
{
	struct bin_writer *writer = data;
	uint32_t zigzag = ((uint32_t)bin << 1) ^ (bin < 0 ? UINT32_MAX : 0);

	put_varint(writer->bytes, writer->n ? (uint32_t)(bin - writer->before) : zigzag);
	put_varint(writer->bytes, count);
	writer->before = bin;
	writer->n++;
}

void put_summary(struct bytes *bytes, const struct summary *summary)
{
	put_i64(bytes, summary->first_due_ns);
	put_i64(bytes, summary->last_due_ns);
	put_number(bytes, summary->count, 8);
	put_number(bytes, summary->lost, 8);
	put_i64(bytes, summary->min);
	put_i64(bytes, summary->max);
	put_i64(bytes, summary->sum);
	put_number(bytes, summary->sum_squares.low, 8);
	put_number(bytes, summary->sum_squares.high, 8);
	put_number(bytes, summary->pairs, 8);
	put_number(bytes, summary->sum_products.low, 8);
	put_number(bytes, summary->sum_products.high, 8);
	put_number(bytes, summary->catch_up_pairs, 8);

	size_t at = bytes->length;
	struct bin_writer writer = { .bytes = bytes };

	put_u32(bytes, 0);
	hist_each(&summary->hist, put_bin, &writer);
	if (!bytes->failed)
		set_number(bytes->data + at, writer.n, 4);
}
