/* SPDX-License-Identifier: Apache-2.0 */
/* What is packed comes out again by the rules of RFC 1951. tests/test_guest_recorder.py unpacks the same with zlib. */
#include "record/deflate.h"

#include "check.h"

#include <string.h>

static struct deflate_table table;
static struct bytes packed;
static uint8_t plain[DEFLATE_MOST], unpacked[DEFLATE_MOST];

static size_t at_bit;

static uint32_t take_bits(int n)
{
	uint32_t value = 0;

	for (int i = 0; i < n; i++, at_bit++) {
		CHECK(at_bit / 8 < packed.length);
		value |= (uint32_t)(packed.data[at_bit / 8] >> at_bit % 8 & 1) << i;
	}
	return value;
}

static uint32_t take_code(int n)
{
	uint32_t code = 0;

	while (n--)
		code = code << 1 | take_bits(1);
	return code;
}

/* The fixed codes: 3.2.6 */
static uint32_t take_symbol(void)
{
	uint32_t code = take_code(7);

	if (code < 0x18)
		return 256 + code;
	code = code << 1 | take_bits(1);
	if (code >= 0x30 && code < 0xc0)
		return code - 0x30;
	if (code >= 0xc0 && code < 0xc8)
		return 280 + code - 0xc0;
	return 144 + (code << 1 | take_bits(1)) - 0x190;
}

static uint32_t take_length(uint32_t symbol)
{
	if (symbol == 285)
		return 258;
	if (symbol < 265)
		return symbol - 254;
	int extra = (int)(symbol - 261) / 4;

	return (4 + (symbol - 261) % 4) * (1u << extra) + 3 + take_bits(extra);
}

static uint32_t take_distance(void)
{
	uint32_t symbol = take_code(5);

	if (symbol < 4)
		return symbol + 1;
	int extra = (int)symbol / 2 - 1;

	return (2 + symbol % 2) * (1u << extra) + 1 + take_bits(extra);
}

static size_t unpack(void)
{
	size_t n = 0;

	at_bit = 0;
	CHECK(take_bits(1) == 1 && take_bits(2) == 1);
	for (uint32_t symbol; (symbol = take_symbol()) != 256;) {
		if (symbol < 256) {
			CHECK(n < sizeof(unpacked));
			unpacked[n++] = (uint8_t)symbol;
			continue;
		}
		uint32_t length = take_length(symbol), distance = take_distance();

		CHECK(distance <= n && distance <= 32768 && n + length <= sizeof(unpacked));
		for (; length; length--, n++)
			unpacked[n] = unpacked[n - distance];
	}
	CHECK((at_bit + 7) / 8 == packed.length);
	return n;
}

/* How many bytes it has become. */
static size_t check_way_and_back(size_t n)
{
	packed.length = 0;
	put_deflated(&packed, plain, n, &table);
	CHECK(!packed.failed && unpack() == n && !memcmp(plain, unpacked, n));
	return packed.length;
}

static void few_bytes(void)
{
	for (size_t n = 0; n < 12; n++) {
		memset(plain, 'x', n);
		CHECK(check_way_and_back(n) <= 13);
	}
}

static void every_byte_and_every_length(void)
{
	for (int i = 0; i < 256; i++)
		plain[i] = (uint8_t)i;
	CHECK(check_way_and_back(256) > 256);
	for (size_t n = 1; n < 600; n++) {
		memset(plain, 0, n);
		CHECK(check_way_and_back(n) <= 14);
	}
}

/* The same eight bytes at each distance, with noise between them that has no match. */
static void every_distance(void)
{
	uint64_t state = 3;

	for (uint32_t distance = 8; distance < 40000; distance += 1 + distance / 9) {
		for (uint32_t i = 0; i < distance; i++)
			plain[i] = (uint8_t)random_below(&state, 256);
		memcpy(plain + distance, plain, 8);
		check_way_and_back(distance + 8);
	}
}

/* As long as a part may be, like a page of events: fixed heads, small numbers, and steps of time. */
static void a_full_part_becomes_less_than_half(void)
{
	uint64_t state = 5;

	for (size_t at = 0; at < sizeof(plain); at += 32) {
		memset(plain + at, 0, 32);
		plain[at] = (uint8_t)random_below(&state, 256);
		plain[at + 1] = (uint8_t)random_below(&state, 4);
		memcpy(plain + at + 8, random_below(&state, 2) ? "rtproof-agent" : "kworker/0:1H-k", 14);
		plain[at + 24] = (uint8_t)random_below(&state, 20);
	}
	CHECK(check_way_and_back(sizeof(plain)) < sizeof(plain) / 2);
}

static void noise_grows_by_less_than_an_eighth(void)
{
	uint64_t state = 7;

	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)random_below(&state, 256);
	CHECK(check_way_and_back(sizeof(plain)) < sizeof(plain) / 8 * 9);
}

int main(void)
{
	few_bytes();
	every_byte_and_every_length();
	every_distance();
	a_full_part_becomes_less_than_half();
	noise_grows_by_less_than_an_eighth();
	bytes_free(&packed);
	return EXIT_SUCCESS;
}
