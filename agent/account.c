/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "account.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEAD_MOST = 512, LINE_MOST = 40, WIDE_DIGITS = 40 };

static void add(struct probe_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* There is room: see room_for(). */
static void add(struct probe_file *file, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	file->length += (size_t)vsnprintf(file->content + file->length, LINE_MOST + WIDE_DIGITS, format, arguments);
	va_end(arguments);
}

static size_t room_for(const uint64_t *bins)
{
	size_t used = 0;

	for (int i = 0; i < RTPROOF_BINS; i++)
		used += bins[i] != 0;
	return HEAD_MOST + used * LINE_MOST + LINE_MOST + WIDE_DIGITS;
}

/* A number of 128 bits in decimal: no 32-bit compiler has a type that wide. The text begins somewhere in the buffer. */
static const char *wide_text(uint64_t low, uint64_t high, char buffer[WIDE_DIGITS + 1])
{
	uint32_t parts[] = { (uint32_t)(high >> 32), (uint32_t)high, (uint32_t)(low >> 32), (uint32_t)low };
	int at = WIDE_DIGITS;

	buffer[at] = '\0';
	do {
		uint64_t rest = 0;

		for (int i = 0; i < 4; i++) {
			rest = rest << 32 | parts[i];
			parts[i] = (uint32_t)(rest / 10);
			rest %= 10;
		}
		buffer[--at] = (char)('0' + rest);
	} while (parts[0] || parts[1] || parts[2] || parts[3]);
	return buffer + at;
}

static void add_head(struct probe_file *file, const struct rtproof_summary *summary)
{
	char wide[WIDE_DIGITS + 1];

	add(file, "count %llu\n", summary->count);
	add(file, "missed %llu\n", summary->missed);
	add(file, "lost %llu\n", summary->lost);
	add(file, "rests %llu\n", summary->rests);
	add(file, "min %lld\n", summary->min);
	add(file, "max %lld\n", summary->max);
	add(file, "sum %lld\n", summary->sum);
	add(file, "sum_squares %s\n", wide_text(summary->sum_squares_low, summary->sum_squares_high, wide));
	add(file, "below %llu\n", summary->below);
	add(file, "above %llu\n", summary->above);
}

int account_file(struct probe_file *file, int thread, const char *field, const struct rtproof_summary *summary,
		 const uint64_t *bins)
{
	file->length = 0;
	file->content = malloc(room_for(bins));
	if (!file->content)
		return -ENOMEM;
	snprintf(file->path, sizeof(file->path), "rtproof.ko/thread%d/%s", thread, field);
	add_head(file, summary);
	for (int i = 0; i < RTPROOF_BINS; i++)
		if (bins[i])
			add(file, "bin %d %" PRIu64 "\n", i, bins[i]);
	return 0;
}
