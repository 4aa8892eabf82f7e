/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "clock.h"

static int64_t read_libc(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * NS_PER_SECOND + t.tv_nsec;
}

static int64_t read_time32(clockid_t clock)
{
	struct sys_time32 t = { 0, 0 };

	syscall(SYS_CLOCK_GETTIME32, clock, &t);
	return (int64_t)t.sec * NS_PER_SECOND + t.nsec;
}

static int64_t (*read_clock)(clockid_t) = read_libc;

int64_t clock_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t clock_cost_ns(void)
{
	int64_t best = INT64_MAX;

	for (int i = 0; i < 1000; i++) {
		int64_t before = clock_now_ns();
		int64_t cost = clock_now_ns() - before;

		if (cost < best)
			best = cost;
	}
	return best;
}

void clock_init(void)
{
	if (sys_time64_works)
		return;
	int64_t libc_ns = clock_cost_ns();

	read_clock = read_time32;
	if (libc_ns < clock_cost_ns())
		read_clock = read_libc;
}

const char *clock_name(void)
{
	return read_clock == read_libc ? "CLOCK_MONOTONIC through libc" : "CLOCK_MONOTONIC, 32-bit system call";
}
