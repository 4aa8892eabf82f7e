/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "account.h"

#include "check.h"

#include <string.h>

static uint64_t bins[RTPROOF_BINS];
static struct probe_file file;

static void make(const struct rtproof_summary *summary)
{
	free(file.content);
	CHECK(account_file(&file, 3, "irq", summary, bins) == 0);
}

static bool is_text(const char *text)
{
	return file.length == strlen(text) && !memcmp(file.content, text, file.length);
}

static void every_number_has_its_line(void)
{
	const struct rtproof_summary summary = { .count = 3, .missed = 4, .lost = 5, .rests = 6, .min = -7, .max = 8, .sum = -9,
						 .sum_squares_low = 10, .below = 11, .above = 12 };

	bins[0] = 1;
	bins[1030] = 2;
	make(&summary);
	CHECK(!strcmp(file.path, "rtproof.ko/thread3/irq"));
	CHECK(is_text("count 3\nmissed 4\nlost 5\nrests 6\nmin -7\nmax 8\nsum -9\nsum_squares 10\nbelow 11\nabove 12\nbin 0 1\n"
		      "bin 1030 2\n"));
}

static void squares_have_128_bits(void)
{
	struct rtproof_summary summary = { .sum_squares_high = 1 };

	make(&summary);
	CHECK(strstr(file.content, "\nsum_squares 18446744073709551616\n"));
	summary.sum_squares_low = summary.sum_squares_high = UINT64_MAX;
	make(&summary);
	CHECK(strstr(file.content, "\nsum_squares 340282366920938463463374607431768211455\n"));
}

/* Under AddressSanitizer this shows that the room is enough. */
static void the_longest_text_has_room(void)
{
	const struct rtproof_summary summary = { .count = UINT64_MAX, .missed = UINT64_MAX, .lost = UINT64_MAX, .rests = UINT64_MAX,
						 .min = INT64_MIN, .max = INT64_MIN, .sum = INT64_MIN,
						 .sum_squares_low = UINT64_MAX, .sum_squares_high = UINT64_MAX,
						 .below = UINT64_MAX, .above = UINT64_MAX };
	char last[64];

	for (int i = 0; i < RTPROOF_BINS; i++)
		bins[i] = UINT64_MAX;
	make(&summary);
	snprintf(last, sizeof(last), "bin %d 18446744073709551615\n", RTPROOF_BINS - 1);
	CHECK(file.length > strlen(last) && !memcmp(file.content + file.length - strlen(last), last, strlen(last)));
}

int main(void)
{
	every_number_has_its_line();
	squares_have_128_bits();
	the_longest_text_has_room();
	free(file.content);
	return EXIT_SUCCESS;
}
