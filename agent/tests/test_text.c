/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "system/text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void durations_have_a_unit(void)
{
	const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{ "0s", 0 },
		{ "1ns", 1 },
		{ "10us", 10000 },
		{ "1.5ms", 1500000 },
		{ ".5ms", 500000 },
		{ "2.s", 2000000000 },
		{ "0.0000000019s", 1 },
		{ "1min", 60000000000 },
		{ "54h", 194400000000000 },
		{ "2d", 172800000000000 },
		{ "1day", 86400000000000 },
		{ "4611686018427387903ns", INT64_MAX / 2 },
	};
	const char *const bad[] = {
		"",    "1",   "ms",   "1 ms", "-1ms",		       "1.2.3ms",
		".ms", "1m",  "1MS",  "1e3ms", "4611686018427387904ns", "99999999999999999999ns",
		"1,5ms", "+1s", "1ms ", "1sec", "200000d",		       "0x1s",
		"9223372036.9s",
	};
	int64_t ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		CHECK(text_duration_ns(good[i].text, &ns) == 0 && ns == good[i].ns);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(text_duration_ns(bad[i], &ns) == -EINVAL);
}

static void numbers_are_whole_and_within_bounds(void)
{
	const char *const bad[] = { "", "x", "1x", "1 ", "-1", "100", "1.0", "99999999999999999999" };
	int64_t value;

	CHECK(text_number("0", 0, 99, &value) == 0 && value == 0);
	CHECK(text_number("99", 0, 99, &value) == 0 && value == 99);
	CHECK(text_number("-5", -10, 99, &value) == 0 && value == -5);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(text_number(bad[i], 0, 99, &value) == -EINVAL);
}

static void files_are_read_as_far_as_there_is_room(void)
{
	char path[] = "/tmp/rtproof-text-XXXXXX", buffer[64];
	int fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, "first line\nsecond\n", 18) == 18 && close(fd) == 0);
	CHECK(text_read_file(path, buffer, sizeof(buffer)) == 18 && !memcmp(buffer, "first line\nsecond\n", 18));
	CHECK(text_read_file(path, buffer, 5) == 5);
	CHECK(text_read_line(path, buffer, sizeof(buffer)) == 0 && !strcmp(buffer, "first line"));
	CHECK(text_read_line(path, buffer, 4) == 0 && !strcmp(buffer, "fir"));
	CHECK(unlink(path) == 0);
	CHECK(text_read_file(path, buffer, sizeof(buffer)) == -ENOENT);
	CHECK(text_read_line(path, buffer, sizeof(buffer)) == -ENOENT);
	CHECK(text_read_file("/", buffer, sizeof(buffer)) == -EISDIR);
}

int main(void)
{
	durations_have_a_unit();
	numbers_are_whole_and_within_bounds();
	files_are_read_as_far_as_there_is_room();
	return EXIT_SUCCESS;
}
