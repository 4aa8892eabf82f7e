/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the agent writes, straight from docs/record-format.md and sharing no code with the writer. */
#ifndef RTPROOF_TESTS_DECODE_H
#define RTPROOF_TESTS_DECODE_H

#include "check.h"

#include "record/bytes.h"

#include <stdbool.h>
#include <string.h>

enum { DECODE_MOST = 65536 };

struct reader {
	const uint8_t *at, *end;
};

static inline uint64_t get_number(struct reader *reader, int size)
{
	uint64_t value = 0;

	CHECK(reader->end - reader->at >= size);
	for (int i = 0; i < size; i++)
		value |= (uint64_t)reader->at[i] << (8 * i);
	reader->at += size;
	return value;
}

static inline int64_t get_i64(struct reader *reader)
{
	return (int64_t)get_number(reader, 8);
}

static inline uint64_t get_varint(struct reader *reader)
{
	uint64_t value = 0, byte = 0x80;

	for (int shift = 0; byte & 0x80; shift += 7) {
		byte = get_number(reader, 1);
		value |= (byte & 0x7f) << shift;
	}
	return value;
}

static inline void get_string(struct reader *reader, char *text, size_t room)
{
	size_t n = (size_t)get_number(reader, 2);

	CHECK(n < room && n <= (size_t)(reader->end - reader->at));
	memcpy(text, reader->at, n);
	text[n] = '\0';
	reader->at += n;
}

/* Element i of a plane of p bits, by the two rules of the page. */
static inline uint64_t plane_element(const uint8_t *plane, uint32_t n, uint32_t i, uint32_t p)
{
	if (p >= 8) {
		struct reader element = { plane + (size_t)i * p / 8, plane + (size_t)n * p / 8 };

		return get_number(&element, (int)p / 8);
	}
	uint32_t in_byte = 8 / p, m = (n + in_byte - 1) / in_byte;

	return (uint64_t)(plane[i % m] >> (i / m * p)) & ((1U << p) - 1);
}

static inline size_t plane_size(uint32_t n, uint32_t p)
{
	return p >= 8 ? (size_t)n * p / 8 : (n + 8 / p - 1) / (8 / p);
}

static inline void get_planes(struct reader *reader, uint64_t *elements, uint32_t n, uint32_t width)
{
	uint32_t shift = 0;

	memset(elements, 0, n * sizeof(*elements));
	for (uint32_t p = 32; p; p /= 2) {
		if (!(width & p))
			continue;
		CHECK((size_t)(reader->end - reader->at) >= plane_size(n, p));
		for (uint32_t i = 0; i < n; i++)
			elements[i] |= plane_element(reader->at, n, i, p) << shift;
		reader->at += plane_size(n, p);
		shift += p;
	}
}

/* Fills values, which has room for DECODE_MOST; answers how many there are. */
static inline uint32_t get_packed(struct reader *reader, int64_t *values)
{
	static uint64_t elements[DECODE_MOST];
	static uint32_t positions[DECODE_MOST];
	uint32_t n = (uint32_t)get_number(reader, 4);
	uint64_t base = get_number(reader, 8);
	uint32_t width = (uint32_t)get_number(reader, 1);
	int size = (int)get_number(reader, 1);
	uint32_t exceptions = (uint32_t)get_number(reader, 2);

	CHECK(n <= DECODE_MOST && width <= 63 && (size == 4 || size == 8) && exceptions <= n);
	get_planes(reader, elements, n, width);
	for (uint32_t i = 0; i < exceptions; i++) {
		positions[i] = (uint32_t)get_number(reader, 2);
		CHECK(positions[i] < n && (i == 0 || positions[i] > positions[i - 1]));
		CHECK(elements[positions[i]] == 0);
	}
	for (uint32_t i = 0; i < exceptions; i++) {
		uint64_t value = get_number(reader, size);

		elements[positions[i]] = size == 4 ? (uint64_t)(int64_t)(int32_t)value : value;
	}
	for (uint32_t i = 0; i < n; i++)
		values[i] = (int64_t)(base + elements[i]);
	return n;
}

struct chunk {
	uint32_t type, sequence;
	struct reader payload;
};

/* The chunk at the reader's place, which must be whole; false at the end. */
static inline bool get_chunk(struct reader *reader, struct chunk *chunk)
{
	const uint8_t *start = reader->at;

	if (reader->at == reader->end)
		return false;
	CHECK(get_number(reader, 4) == 0x1a505452);
	uint32_t length = (uint32_t)get_number(reader, 4);

	chunk->type = (uint32_t)get_number(reader, 2);
	CHECK(get_number(reader, 2) == 0);
	chunk->sequence = (uint32_t)get_number(reader, 4);
	uint32_t crc = (uint32_t)get_number(reader, 4), padding = (4 - length % 4) % 4;

	CHECK((size_t)(reader->end - reader->at) >= (size_t)length + padding);
	CHECK(crc == crc32_update(crc32_update(0, start, 16), reader->at, length));
	chunk->payload = (struct reader){ reader->at, reader->at + length };
	reader->at += length;
	while (padding--)
		CHECK(get_number(reader, 1) == 0);
	return true;
}

/* The whole of a file. The memory is never given back. */
static inline struct reader read_whole(const char *path)
{
	FILE *file = fopen(path, "rb");

	CHECK(file);
	CHECK(fseek(file, 0, SEEK_END) == 0);
	long size = ftell(file);

	CHECK(size >= 0);
	rewind(file);
	uint8_t *data = malloc((size_t)size + 1);

	CHECK(data);
	CHECK(fread(data, 1, (size_t)size, file) == (size_t)size);
	CHECK(fclose(file) == 0);
	return (struct reader){ data, data + size };
}

#endif
