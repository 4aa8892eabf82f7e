/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/clock_adjust.h"

#include "collect/lines.h"

#include <string.h>
#include <sys/timex.h>

enum { BOOT_CLOCK = 7, IN_NANOSECONDS = 0x2000, NS_PER_US = 1000, NS_PER_MS = 1000000 };

static int64_t to_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * NS_PER_SECOND + t->tv_nsec;
}

/* The two clocks cannot be read at once: the difference is whole milliseconds, below which nothing sleeps. */
static void put_slept(struct bytes *text)
{
	struct timespec awake, since_boot;

	if (clock_gettime(CLOCK_MONOTONIC, &awake) || clock_gettime(BOOT_CLOCK, &since_boot))
		return; /* before Linux 2.6.39 */
	int64_t slept_ns = to_ns(&since_boot) - to_ns(&awake);

	put_format(text, "slept_ns %lld\n", (long long)(slept_ns - slept_ns % NS_PER_MS));
}

int collect_clock_adjust(struct bytes *text, int pid)
{
	struct timex now;

	(void)pid;
	memset(&now, 0, sizeof(now)); /* nothing is to be changed */
	if (adjtimex(&now) < 0)
		return -errno;
	put_format(text, "status 0x%x\noffset_ns %lld\nfrequency_ppb %lld\n", (unsigned int)now.status,
		   (long long)now.offset * (now.status & IN_NANOSECONDS ? 1 : NS_PER_US), (long long)now.freq * 1000 / 65536);
	put_slept(text);
	return 0;
}
