/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "bytes.h"

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

static void numbers_are_little_endian(void)
{
	struct bytes bytes = { 0 };

	put_u8(&bytes, 0x12);
	put_u16(&bytes, 0x3456);
	put_u32(&bytes, 0x789abcde);
	put_i64(&bytes, -2);
	put_number(&bytes, 0x0102030405060708, 8);
	expect(&bytes, "\x12\x56\x34\xde\xbc\x9a\x78\xfe\xff\xff\xff\xff\xff\xff\xff\x08\x07\x06\x05\x04\x03\x02\x01", 23);
	set_number(bytes.data + 1, 0xabcd, 2);
	CHECK(bytes.data[1] == 0xcd && bytes.data[2] == 0xab && bytes.data[3] == 0xde);
	bytes_free(&bytes);
	CHECK(!bytes.data && !bytes.length && !bytes.room);
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

static void many_bytes_keep_their_places(void)
{
	struct bytes bytes = { 0 };

	for (uint32_t i = 0; i < 100000; i++)
		put_u32(&bytes, i * 2654435761U);
	CHECK(bytes.length == 400000 && !bytes.failed);
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t value = i * 2654435761U;

		for (uint32_t j = 0; j < 4; j++)
			CHECK(bytes.data[4 * i + j] == (uint8_t)(value >> (8 * j)));
	}
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

int main(void)
{
	numbers_are_little_endian();
	varints_have_seven_bits_a_byte();
	strings_have_a_length_and_are_cut_where_it_ends();
	many_bytes_keep_their_places();
	running_out_of_memory_is_remembered();
	return EXIT_SUCCESS;
}
