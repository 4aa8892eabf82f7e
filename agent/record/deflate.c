/* SPDX-License-Identifier: Apache-2.0 */
#include "record/deflate.h"

#include <string.h>

enum { HASHED = 4, LONGEST = 258, END_OF_BLOCK = 256 };

/* Bits wait here until they make a byte; the first one is the lowest. */
struct bits {
	struct bytes *bytes;
	uint32_t waiting;
	int n;
};

static void put_bits(struct bits *bits, uint32_t value, int n)
{
	bits->waiting |= value << bits->n;
	for (bits->n += n; bits->n >= 8; bits->n -= 8, bits->waiting >>= 8)
		put_u8(bits->bytes, (uint8_t)bits->waiting);
}

/* Huffman codes begin with their highest bit. */
static void put_code(struct bits *bits, uint32_t code, int n)
{
	uint32_t turned = 0;

	for (int i = 0; i < n; i++)
		turned |= (code >> i & 1) << (n - 1 - i);
	put_bits(bits, turned, n);
}

/* A byte, the end, or a length: RFC 1951, 3.2.6. */
static void put_symbol(struct bits *bits, uint32_t symbol)
{
	if (symbol < 144)
		put_code(bits, 0x30 + symbol, 8);
	else if (symbol < 256)
		put_code(bits, 0x190 + symbol - 144, 9);
	else if (symbol < 280)
		put_code(bits, symbol - 256, 7);
	else
		put_code(bits, 0xc0 + symbol - 280, 8);
}

/* How many bits behind the `kept` highest ones of a value go into the extra bits. */
static int extra_bits(uint32_t value, int kept)
{
	int extra = 0;

	while (value >> (extra + kept))
		extra++;
	return extra;
}

static void put_match(struct bits *bits, uint32_t length, uint32_t distance)
{
	uint32_t value = length - 3;
	int extra = extra_bits(value, 3);

	if (length == LONGEST) {
		put_symbol(bits, 285);
	} else {
		put_symbol(bits, 257 + 4 * (uint32_t)extra + (value >> extra));
		put_bits(bits, value & ((1u << extra) - 1), extra);
	}
	value = distance - 1;
	extra = extra_bits(value, 2);
	put_code(bits, 2 * (uint32_t)extra + (value >> extra), 5);
	put_bits(bits, value & ((1u << extra) - 1), extra);
}

static uint32_t hash_of(const uint8_t *at)
{
	uint32_t four = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;

	return four * 2654435761u >> 20; /* to 12 bits */
}

static void remember(const uint8_t *data, size_t at, size_t n, struct deflate_table *table)
{
	if (n - at < HASHED)
		return;
	uint32_t *place = &table->place[hash_of(data + at)];
	size_t back = *place ? at + 1 - *place : 0;

	table->before[at % DEFLATE_FARTHEST] = (uint16_t)(back < DEFLATE_FARTHEST ? back : 0);
	*place = (uint32_t)at + 1;
}

static size_t length_of_match(const uint8_t *one, const uint8_t *other, size_t most)
{
	size_t length = 0;

	while (length < most && one[length] == other[length])
		length++;
	return length;
}

/* The length of the longest match with a place before; 0: there is none. */
static uint32_t find_match(const uint8_t *data, size_t at, size_t n, const struct deflate_table *table, uint32_t *distance)
{
	if (at >= n || n - at < HASHED)
		return 0;
	size_t place = table->place[hash_of(data + at)], longest = HASHED - 1, most = n - at < LONGEST ? n - at : LONGEST;
	size_t back = place ? at + 1 - place : 0, step = back;

	for (int tries = 0; step && back < DEFLATE_FARTHEST && longest < most && tries < DEFLATE_TRIES; tries++) {
		size_t length = length_of_match(data + at - back, data + at, most);

		if (length > longest) {
			longest = length;
			*distance = (uint32_t)back;
		}
		step = table->before[(at - back) % DEFLATE_FARTHEST];
		back += step;
	}
	return longest < HASHED ? 0 : (uint32_t)longest;
}

void put_deflated(struct bytes *bytes, const uint8_t *data, size_t n, struct deflate_table *table)
{
	struct bits bits = { bytes, 0, 0 };
	uint32_t distance = 0, farther;
	size_t at = 0;

	memset(table->place, 0, sizeof(table->place));
	put_bits(&bits, 1, 1); /* the last block .. */
	put_bits(&bits, 1, 2); /* .. with the fixed codes */
	while (at < n) {
		uint32_t length = find_match(data, at, n, table, &distance);

		remember(data, at, n, table);
		if (!length || find_match(data, at + 1, n, table, &farther) > length) {
			put_symbol(&bits, data[at++]);
			continue;
		}
		put_match(&bits, length, distance);
		for (size_t end = at + length; ++at < end;)
			remember(data, at, n, table);
	}
	put_symbol(&bits, END_OF_BLOCK);
	put_bits(&bits, 0, 7); /* what is left of the last byte */
}
