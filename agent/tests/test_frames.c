/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "background/frames.h"

#include "check.h"

#include <string.h>

/* RFC 4648, section 10, and every value of six bits. */
static void base64_is_that_of_the_standard(void)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
	};
	uint8_t all[48];
	char text[100];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		base64(text, (const uint8_t *)cases[i].bytes, strlen(cases[i].bytes));
		CHECK(!strcmp(text, cases[i].text));
	}
	for (unsigned i = 0; i < 64; i += 4) {
		uint32_t three = i << 18 | (i + 1) << 12 | (i + 2) << 6 | (i + 3);

		all[i / 4 * 3] = (uint8_t)(three >> 16);
		all[i / 4 * 3 + 1] = (uint8_t)(three >> 8);
		all[i / 4 * 3 + 2] = (uint8_t)three;
	}
	base64(text, all, sizeof(all));
	CHECK(!strcmp(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"));
}

static size_t sent(bool as_text, char type, int64_t offset, const uint8_t *bytes, size_t length, char *got, size_t room)
{
	static struct frames frames;
	int line[2];

	CHECK(pipe(line) == 0);
	frames = (struct frames){ .fd = line[1], .as_text = as_text };
	CHECK(frame_send(&frames, type, offset, bytes, length) == 0);
	CHECK(close(line[1]) == 0);
	ssize_t n = read(line[0], got, room);

	CHECK(n > 0 && close(line[0]) == 0);
	return (size_t)n;
}

/* The check value of CRC-32 is that of "123456789". */
static void a_frame_says_what_it_carries(void)
{
	const uint8_t *digits = (const uint8_t *)"123456789";
	const char binary[] = "\n=rtproof L 12345678901 9 cbf43926\n123456789", text[] = "\n=rtproof R 7 9 cbf43926 MTIzNDU2Nzg5\n";
	const char empty[] = "\n=rtproof S 0 0 00000000 \n";
	char got[200];

	CHECK(sent(false, 'L', 12345678901, digits, 9, got, sizeof(got)) == sizeof(binary) - 1);
	CHECK(!memcmp(got, binary, sizeof(binary) - 1));
	CHECK(sent(true, 'R', 7, digits, 9, got, sizeof(got)) == sizeof(text) - 1);
	CHECK(!memcmp(got, text, sizeof(text) - 1));
	CHECK(sent(true, 'S', 0, digits, 0, got, sizeof(got)) == sizeof(empty) - 1);
	CHECK(!memcmp(got, empty, sizeof(empty) - 1));
}

/* The longest that has room, with what stands for each byte at its worst. */
static void the_longest_frames_have_room(void)
{
	static uint8_t bytes[FRAME_BYTES];
	static char got[FRAME_BYTES + 128];
	struct frames binary = { .as_text = false }, text = { .as_text = true };

	memset(bytes, 0xff, sizeof(bytes));
	CHECK(frame_most(&binary) == FRAME_BYTES && frame_most(&text) == FRAME_TEXT_BYTES);
	size_t n = sent(false, 'R', INT64_MAX, bytes, FRAME_BYTES, got, sizeof(got));

	CHECK(n > FRAME_BYTES && !memcmp(got + n - FRAME_BYTES, bytes, FRAME_BYTES));
	n = sent(true, 'R', INT64_MAX, bytes, FRAME_TEXT_BYTES, got, sizeof(got));
	CHECK(n > FRAME_TEXT_BYTES / 3 * 4 && n < 1024 && got[n - 2] == '/' && got[n - 1] == '\n');
}

static void a_broken_connection_is_told(void)
{
	static struct frames frames;
	int line[2];

	CHECK(pipe(line) == 0 && close(line[0]) == 0);
	signal(SIGPIPE, SIG_IGN);
	frames = (struct frames){ .fd = line[1] };
	CHECK(frame_send(&frames, 'S', 0, (const uint8_t *)"x", 1) == -EPIPE);
	CHECK(close(line[1]) == 0);
}

int main(void)
{
	base64_is_that_of_the_standard();
	a_frame_says_what_it_carries();
	the_longest_frames_have_room();
	a_broken_connection_is_told();
	return EXIT_SUCCESS;
}
