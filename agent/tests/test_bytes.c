/* SPDX-License-Identifier: Apache-2.0 */
#include "record/bytes.h"

#include "check.h"
#include "decode.h"

#include <string.h>

/* The sanitizers' allocators end the program when memory runs out, unless told not to. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void expect(const struct bytes *bytes, const char *content, size_t n)
{
	CHECK(!bytes->failed);
	CHECK(bytes->length == n);
	CHECK(memcmp(bytes->data, content, n) == 0);
}

static void varints_have_seven_bits_a_byte(void)
{
	struct bytes bytes = { 0 };

	put_varint(&bytes, 0);
	put_varint(&bytes, 127);
	put_varint(&bytes, 128);
	put_varint(&bytes, UINT64_MAX);
	expect(&bytes, "\0\x7f\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 14);
	bytes_free(&bytes);
}

static void strings_have_a_length_and_are_cut_where_it_ends(void)
{
	static char text[70000];
	struct bytes bytes = { 0 };

	put_string(&bytes, "abc");
	put_string(&bytes, "");
	expect(&bytes, "\3\0abc\0\0", 7);
	memset(text, 'x', sizeof(text) - 1);
	put_string(&bytes, text);
	CHECK(bytes.length == 7 + 2 + 65535);
	CHECK(bytes.data[7] == 0xff && bytes.data[8] == 0xff && bytes.data[bytes.length - 1] == 'x');
	bytes_free(&bytes);
}

static void running_out_of_memory_is_remembered(void)
{
	volatile size_t too_much = SIZE_MAX / 4;
	struct bytes bytes = { 0 };

	put_u8(&bytes, 7);
	CHECK(!bytes_extend(&bytes, too_much));
	CHECK(bytes.failed && bytes.length == 1 && bytes.data[0] == 7);
	put_u8(&bytes, 8);
	CHECK(bytes.failed && bytes.length == 2 && bytes.data[1] == 8);
	bytes_free(&bytes);
}

static const uint32_t lengths[] = {
	0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 1000, 1023, 4095, 4096, 65535, 65536,
};

enum { LENGTHS = sizeof(lengths) / sizeof(*lengths), LONG = 300 };

static int64_t values[PACKED_MOST];

/* Packs the first n values, reads them back, answers how many bytes they took. */
static size_t round_trip(uint32_t n)
{
	static int64_t back[DECODE_MOST];
	struct bytes bytes = { 0 };

	put_packed(&bytes, values, n);
	CHECK(!bytes.failed);
	struct reader reader = { bytes.data, bytes.data + bytes.length };

	CHECK(get_packed(&reader, back) == n);
	CHECK(reader.at == reader.end);
	CHECK(memcmp(values, back, n * sizeof(*values)) == 0);
	size_t size = bytes.length;

	bytes_free(&bytes);
	return size;
}

static void fill(uint32_t n, uint64_t seed, int64_t base, int bits)
{
	for (uint32_t i = 0; i < n; i++)
		values[i] = (int64_t)((uint64_t)base + (bits ? random_bits(&seed) >> (64 - bits) : 0));
}

static void constants_take_no_room(void)
{
	const int64_t bases[] = { 0, 1, -1, INT64_MIN, INT64_MAX };

	for (int base = 0; base < 5; base++)
		for (int i = 0; i < LENGTHS; i++) {
			fill(lengths[i], 0, bases[base], 0);
			CHECK(round_trip(lengths[i]) == 16);
		}
}

static void every_width_comes_back_whole(void)
{
	for (int bits = 1; bits <= 64; bits++) {
		for (int i = 0; i < LENGTHS; i++) {
			uint32_t n = lengths[i] < 1024 || bits % 16 == 13 ? lengths[i] : LONG;

			fill(n, (uint64_t)bits * 100 + (uint64_t)i, bits % 3 ? -5 : INT64_MAX / 3, bits);
			size_t size = round_trip(n);

			/* No dearer than the bits that were put in; differences of 64 bits need exceptions. */
			CHECK(size <= 16 + (size_t)n * (size_t)bits / 8 + 7 || (bits >= 63 && size <= 16 + (size_t)n * 18));
		}
	}
}

static void extremes_come_back_whole(void)
{
	uint64_t state = 5;

	for (int i = 0; i < LENGTHS; i++) {
		for (uint32_t j = 0; j < lengths[i]; j++)
			values[j] = random_below(&state, 2) ? INT64_MAX : INT64_MIN;
		round_trip(lengths[i]);
	}
	fill(PACKED_MOST, 6, INT64_MIN, 0);
	values[40000] = 0;
	CHECK(round_trip(PACKED_MOST) == 16 + 2 + 8);
	values[40000] = INT64_MAX; /* modulo 2^64 this is next to the base */
	CHECK(round_trip(PACKED_MOST) == 16 + 2 + 4);
}

/* Some thousand nanoseconds with a few large ones: what latencies look like. */
static void outliers_cost_only_themselves(void)
{
	uint64_t state = 7;

	fill(4096, 8, 3000, 11);
	size_t plain = round_trip(4096);

	for (int i = 0; i < 20; i++)
		values[random_below(&state, 4096)] = 2000000 + (int64_t)random_below(&state, 1000000000);
	CHECK(round_trip(4096) <= plain + 20 * 6);
	for (int i = 0; i < 20; i++)
		values[random_below(&state, 4096)] = -1 - (int64_t)random_below(&state, 1000000000);
	/* Low ones move the base to a value that is common but not the least: a few more become exceptions. */
	const size_t moved = 128;

	CHECK(round_trip(4096) <= plain + (40 + moved) * 6);
	values[100] = INT64_MIN / 2;
	values[200] = INT64_MAX / 2;
	CHECK(round_trip(4096) <= plain + (42 + moved) * 10);
}

static void random_arrays_come_back_whole(void)
{
	uint64_t state = 9;

	for (int round = 0; round < 2000; round++) {
		uint32_t n = random_below(&state, LONG);
		int shift = (int)random_below(&state, 64), far = (int)random_below(&state, 64);

		for (uint32_t i = 0; i < n; i++)
			values[i] = (int64_t)random_bits(&state) >> (random_below(&state, 16) ? shift : far);
		round_trip(n);
	}
}

int main(void)
{
	varints_have_seven_bits_a_byte();
	strings_have_a_length_and_are_cut_where_it_ends();
	running_out_of_memory_is_remembered();
	constants_take_no_room();
	every_width_comes_back_whole();
	extremes_come_back_whole();
	outliers_cost_only_themselves();
	random_arrays_come_back_whole();
	return EXIT_SUCCESS;
}
