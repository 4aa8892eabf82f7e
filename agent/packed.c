/* SPDX-License-Identifier: Apache-2.0 */
#include "packed.h"

#include <stdbool.h>
#include <string.h>

/* One way to encode an array, and what it costs. */
struct plan {
	uint64_t base;
	int width;
	int exception_size;
	uint32_t exceptions;
	uint64_t cost;
};

static int bits_of(uint64_t value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

/* Difference to the base, as the unsigned number that the planes would hold. */
static uint64_t difference(int64_t value, uint64_t base)
{
	return (uint64_t)value - base;
}

static bool fits_32(uint64_t difference)
{
	return (int64_t)difference >= INT32_MIN && (int64_t)difference <= INT32_MAX;
}

/* Bytes of all planes: each is filled up to a whole byte. */
static uint64_t planes_size(uint32_t n, int width)
{
	uint64_t size = 0;

	for (int part = 32; part > 0; part /= 2)
		if (width & part)
			size += ((uint64_t)n * (unsigned)part + 7) / 8;
	return size;
}

/* The cheapest width for a base: every element wider than it is an exception of position and value. */
static struct plan plan_for_base(const int64_t *values, uint32_t n, uint64_t base)
{
	uint32_t of_width[65] = { 0 };
	int widest_long = 0; /* of the elements that would need an exception of 8 bytes */

	for (uint32_t i = 0; i < n; i++) {
		uint64_t d = difference(values[i], base);
		int width = bits_of(d);

		of_width[width]++;
		if (width > widest_long && !fits_32(d))
			widest_long = width;
	}
	struct plan best = { .cost = UINT64_MAX };
	uint32_t wider = of_width[64];

	for (int width = 63; width >= 0; width--) {
		int value_size = widest_long > width ? 8 : 4;
		uint64_t cost = planes_size(n, width) + (uint64_t)wider * (unsigned)(2 + value_size);

		if (cost < best.cost && wider <= UINT16_MAX)
			best = (struct plan){ base, width, value_size, wider, cost };
		wider += of_width[width];
	}
	return best;
}

static int64_t least_of(const int64_t *values, size_t n)
{
	int64_t least = n ? values[0] : 0;

	for (size_t i = 1; i < n; i++)
		if (values[i] < least)
			least = values[i];
	return least;
}

/* Median of the minima of 64 stretches: below the bulk, yet not pulled down by a few low outliers. */
static int64_t robust_minimum(const int64_t *values, uint32_t n)
{
	int64_t minima[64] = { 0 };
	size_t stretch = n / 64;

	for (uint32_t i = 0; i < 64; i++, values += stretch) {
		int64_t least = least_of(values, stretch);
		uint32_t at = i;

		for (; at > 0 && minima[at - 1] > least; at--)
			minima[at] = minima[at - 1];
		minima[at] = least;
	}
	return minima[32];
}

static struct plan choose_plan(const int64_t *values, uint32_t n)
{
	struct plan plan = plan_for_base(values, n, (uint64_t)least_of(values, n));

	if (n >= 128) {
		struct plan other = plan_for_base(values, n, (uint64_t)robust_minimum(values, n));

		if (other.cost < plan.cost)
			plan = other;
	}
	return plan;
}

static uint64_t in_planes(int64_t value, const struct plan *plan)
{
	uint64_t d = difference(value, plan->base);

	return bits_of(d) > plan->width ? 0 : d;
}

/* Elements narrower than a byte: byte j holds elements j, j + m, j + 2m, ... */
static void put_narrow_plane(struct bytes *bytes, const int64_t *values, uint32_t n, const struct plan *plan, int shift,
			     int part)
{
	uint32_t stride = (n + 8 / (uint32_t)part - 1) / (8 / (uint32_t)part);
	uint8_t *plane = bytes_extend(bytes, stride);

	if (!plane)
		return;
	memset(plane, 0, stride);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t bits = (in_planes(values[i], plan) >> shift) & ((1U << part) - 1);

		plane[i % stride] |= (uint8_t)(bits << (i / stride * (uint32_t)part));
	}
}

static void put_wide_plane(struct bytes *bytes, const int64_t *values, uint32_t n, const struct plan *plan, int shift,
			   int part)
{
	uint8_t *plane = bytes_extend(bytes, (size_t)n * (size_t)part / 8);

	for (uint32_t i = 0; plane && i < n; i++)
		set_number(plane + (size_t)i * (size_t)part / 8, in_planes(values[i], plan) >> shift, part / 8);
}

static void put_exceptions(struct bytes *bytes, const int64_t *values, uint32_t n, const struct plan *plan)
{
	for (uint32_t i = 0; i < n; i++)
		if (bits_of(difference(values[i], plan->base)) > plan->width)
			put_u16(bytes, (uint16_t)i);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t d = difference(values[i], plan->base);

		if (bits_of(d) > plan->width)
			put_number(bytes, d, plan->exception_size);
	}
}

void put_packed(struct bytes *bytes, const int64_t *values, uint32_t n)
{
	struct plan plan = choose_plan(values, n);
	int shift = 0;

	put_u32(bytes, n);
	put_number(bytes, plan.base, 8);
	put_u8(bytes, (uint8_t)plan.width);
	put_u8(bytes, (uint8_t)plan.exception_size);
	put_u16(bytes, (uint16_t)plan.exceptions);
	for (int part = 32; part > 0; part /= 2) {
		if (!(plan.width & part) || !n)
			continue;
		if (part >= 8)
			put_wide_plane(bytes, values, n, &plan, shift, part);
		else
			put_narrow_plane(bytes, values, n, &plan, shift, part);
		shift += part;
	}
	put_exceptions(bytes, values, n, &plan);
}
