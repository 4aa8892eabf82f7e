/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/slice_summary.h"

#include "record/bytes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
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

static int32_t bin_of_magnitude(uint64_t value)
{
	if (value < 1024)
		return (int32_t)value;
	int e = 63 - __builtin_clzll(value);

	return 1024 + (e - 10) * HIST_PAGE + (int32_t)(value >> (e - 9)) - HIST_PAGE;
}

int32_t hist_bin(int64_t value)
{
	return value >= 0 ? bin_of_magnitude((uint64_t)value) : -1 - bin_of_magnitude((uint64_t)(-1 - value));
}

/* Smallest value of a bin, and how many values it has. */
static uint64_t bin_bottom(int32_t magnitude, uint64_t *values)
{
	int shift = magnitude < 1024 ? 0 : (magnitude - 1024) / HIST_PAGE + 1;

	*values = 1ULL << shift;
	return shift ? (uint64_t)(HIST_PAGE + (magnitude - 1024) % HIST_PAGE) << shift : (uint64_t)magnitude;
}

int64_t hist_top(int32_t bin)
{
	uint64_t values, bottom = bin_bottom(bin >= 0 ? bin : -1 - bin, &values);

	return bin >= 0 ? (int64_t)(bottom + values - 1) : -1 - (int64_t)bottom;
}

int hist_add(struct hist *hist, int64_t value)
{
	int32_t bin = hist_bin(value);
	int32_t magnitude = bin >= 0 ? bin : -1 - bin;
	uint32_t **page = (bin >= 0 ? hist->positive : hist->negative) + magnitude / HIST_PAGE;

	if (!*page)
		*page = calloc(HIST_PAGE, sizeof(**page));
	if (!*page)
		return -ENOMEM;
	(*page)[magnitude % HIST_PAGE]++;
	return 0;
}

void hist_each(const struct hist *hist, void (*visit)(void *, int32_t, uint32_t), void *data)
{
	for (int32_t bin = -HIST_PAGES * HIST_PAGE; bin < HIST_PAGES * HIST_PAGE; bin++) {
		int32_t magnitude = bin >= 0 ? bin : -1 - bin;
		uint32_t *page = (bin >= 0 ? hist->positive : hist->negative)[magnitude / HIST_PAGE];

		if (!page)
			bin += HIST_PAGE - 1; /* bins of a missing page are all empty; pages begin at multiples */
		else if (page[magnitude % HIST_PAGE])
			visit(data, bin, page[magnitude % HIST_PAGE]);
	}
}

static void each_page(struct hist *hist, void (*act)(uint32_t **))
{
	for (int i = 0; i < HIST_PAGES; i++) {
		act(&hist->negative[i]);
		act(&hist->positive[i]);
	}
}

static void clear_page(uint32_t **page)
{
	if (*page)
		memset(*page, 0, HIST_PAGE * sizeof(**page));
}

static void free_page(uint32_t **page)
{
	free(*page);
	*page = NULL;
}

void hist_clear(struct hist *hist)
{
	each_page(hist, clear_page);
}

void hist_free(struct hist *hist)
{
	each_page(hist, free_page);
}

static void sink(struct top *top, struct top_entry entry)
{
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < top->n && top->entries[child + 1].value < top->entries[child].value)
			child++;
		if (child >= top->n || top->entries[child].value >= entry.value)
			break;
		top->entries[at] = top->entries[child];
		at = child;
	}
	top->entries[at] = entry;
}

void top_add(struct top *top, uint64_t index, int64_t due_ns, int64_t value)
{
	struct top_entry entry = { index, due_ns, value, true };

	if (top->n == TOP_K) {
		/* Equal values: the earlier one stays. */
		if (value > top->entries[0].value)
			sink(top, entry);
		return;
	}
	uint32_t at = top->n++;

	for (; at > 0 && top->entries[(at - 1) / 2].value > value; at = (at - 1) / 2)
		top->entries[at] = top->entries[(at - 1) / 2];
	top->entries[at] = entry;
}

bool top_is_fresh(const struct top *top)
{
	for (uint32_t i = 0; i < top->n; i++)
		if (top->entries[i].fresh)
			return true;
	return false;
}

bool put_top(struct bytes *bytes, struct top *top)
{
	int64_t columns[3][TOP_K];
	uint32_t n = 0;

	for (uint32_t i = 0; i < top->n; i++) {
		struct top_entry *entry = &top->entries[i];

		if (!entry->fresh)
			continue;
		entry->fresh = false;
		columns[0][n] = (int64_t)entry->index;
		columns[1][n] = entry->due_ns;
		columns[2][n++] = entry->value;
	}
	for (int column = 0; n && column < 3; column++)
		put_packed(bytes, columns[column], n);
	return n > 0;
}
