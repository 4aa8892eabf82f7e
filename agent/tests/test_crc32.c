/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "crc32.h"

enum { MOST = 300 };

/* Bit by bit, from the definition: reflected polynomial 0xedb88320. */
static uint32_t by_bits(const uint8_t *data, size_t n)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

int main(void)
{
	uint8_t data[MOST];
	uint64_t state = 1;

	/* The check value that catalogues of CRCs give for this one. */
	CHECK(crc32_update(0, (const uint8_t *)"123456789", 9) == 0xcbf43926);
	CHECK(crc32_update(0, data, 0) == 0);
	for (size_t i = 0; i < MOST; i++)
		data[i] = (uint8_t)random_below(&state, 256);
	for (size_t n = 0; n < MOST; n++) {
		size_t first = random_below(&state, (uint32_t)n + 1);
		uint32_t in_parts = crc32_update(crc32_update(0, data, first), data + first, n - first);

		CHECK(crc32_update(0, data, n) == by_bits(data, n));
		CHECK(in_parts == by_bits(data, n));
	}
	return EXIT_SUCCESS;
}
