/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of the record: a growing buffer with its numbers, arrays of packed numbers, and the checksum of a chunk. All is
 * little-endian whatever the machine is, and put byte by byte: a C struct has other holes on every machine. When memory runs
 * out, the buffer remembers it and the record reports it once.
 */
#ifndef RTPROOF_BYTES_H
#define RTPROOF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *data;
	size_t length, room;
	bool failed; /* out of memory: content is not complete */
};

/* Room for n more bytes, already counted in length; NULL when there is no memory. */
uint8_t *bytes_extend(struct bytes *bytes, size_t n);
void bytes_free(struct bytes *bytes);

void put_bytes(struct bytes *bytes, const void *data, size_t n);
void put_number(struct bytes *bytes, uint64_t value, int size);
void put_string(struct bytes *bytes, const char *text);
void put_varint(struct bytes *bytes, uint64_t value);

/* Writes value over bytes that are there already. */
void set_number(uint8_t *at, uint64_t value, int size);

static inline void put_u8(struct bytes *b, uint8_t value)
{
	put_number(b, value, 1);
}

static inline void put_u16(struct bytes *b, uint16_t value)
{
	put_number(b, value, 2);
}

static inline void put_u32(struct bytes *b, uint32_t value)
{
	put_number(b, value, 4);
}

static inline void put_i64(struct bytes *b, int64_t value)
{
	put_number(b, (uint64_t)value, 8);
}

/* The packed array of docs/record-format.md: frame of reference, bit planes, exceptions. */

enum { PACKED_MOST = 65536 };

/* Appends n values (at most PACKED_MOST) in the smallest of the encodings that it tries. */
void put_packed(struct bytes *bytes, const int64_t *values, uint32_t n);

/* CRC-32 of IEEE 802.3, as zlib computes it, so that the host checks chunks with a library. */

/* Start with crc 0; feed the result back in to go on. */
uint32_t crc32_update(uint32_t crc, const uint8_t *data, size_t n);

#endif
