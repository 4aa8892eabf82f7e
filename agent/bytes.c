/* SPDX-License-Identifier: Apache-2.0 */
#include "bytes.h"

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
