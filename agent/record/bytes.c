/* SPDX-License-Identifier: Apache-2.0 */
#include "record/bytes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

uint8_t *bytes_extend(struct bytes *bytes, size_t n)
{
	if (bytes->length + n > bytes->room) {
		size_t room = (bytes->length + n) * 2;
		uint8_t *data = realloc(bytes->data, room);

		if (!data) {
			bytes->failed = true;
			return NULL;
		}
		bytes->data = data;
		bytes->room = room;
	}
	bytes->length += n;
	return bytes->data + bytes->length - n;
}

void bytes_free(struct bytes *bytes)
{
	free(bytes->data);
	memset(bytes, 0, sizeof(*bytes));
}

void set_number(uint8_t *at, uint64_t value, int size)
{
	for (int i = 0; i < size; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

void put_number(struct bytes *bytes, uint64_t value, int size)
{
	uint8_t *at = bytes_extend(bytes, (size_t)size);

	if (at)
		set_number(at, value, size);
}

void put_bytes(struct bytes *bytes, const void *data, size_t n)
{
	uint8_t *at = bytes_extend(bytes, n);

	if (at && n)
		memcpy(at, data, n);
}

void put_string(struct bytes *bytes, const char *text)
{
	size_t n = strlen(text);

	if (n > UINT16_MAX)
		n = UINT16_MAX;
	put_u16(bytes, (uint16_t)n);
	put_bytes(bytes, text, n);
}

void put_varint(struct bytes *bytes, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_u8(bytes, (uint8_t)(value | 0x80));
	put_u8(bytes, (uint8_t)value);
}

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

/* Sixteen entries, half a byte at a time: at some kilobytes a second a big table buys nothing but cache misses. */
static const uint32_t of_nibble[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
	0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

uint32_t crc32_update(uint32_t crc, const uint8_t *data, size_t n)
{
	crc = ~crc;
	for (size_t i = 0; i < n; i++) {
		crc ^= data[i];
		crc = of_nibble[crc & 15] ^ (crc >> 4);
		crc = of_nibble[crc & 15] ^ (crc >> 4);
	}
	return ~crc;
}
