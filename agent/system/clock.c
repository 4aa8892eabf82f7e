/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/clock.h"

/* Readings around one of the other clock that lie this far apart tell nothing. */
enum { RAW_TRIES = 5, RAW_APART_NS = 100000 };

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

bool clock_raw_ns(int64_t *difference_ns)
{
	int64_t least_ns = RAW_APART_NS;
	struct timespec t;
	bool found = false;

	if (clock_getres(CLOCK_MONOTONIC_RAW, &t) < 0)
		return false;
	for (int i = 0; i < RAW_TRIES; i++) {
		int64_t before_ns = clock_now_ns(), raw_ns = read_clock(CLOCK_MONOTONIC_RAW), apart_ns = clock_now_ns() - before_ns;

		if (apart_ns >= least_ns)
			continue;
		least_ns = apart_ns;
		*difference_ns = raw_ns - before_ns - apart_ns / 2;
		found = true;
	}
	return found;
}

struct clock_pair clock_both(void)
{
	struct clock_pair pair = { .monotonic_ns = clock_now_ns(), .wall_ns = clock_wall_ns() };

	pair.doubt_ns = clock_now_ns() - pair.monotonic_ns;
	return pair;
}

int64_t clock_step_ns(const struct clock_pair *before, const struct clock_pair *after)
{
	int64_t passed_ns = after->monotonic_ns - before->monotonic_ns;
	int64_t step_ns = after->wall_ns - before->wall_ns - passed_ns;
	/* Slewing runs at 500 ppm at most (adjtimex(2)). */
	int64_t allowed_ns = before->doubt_ns + after->doubt_ns + passed_ns / 1000 + 1000000;

	return step_ns > allowed_ns || step_ns < -allowed_ns ? step_ns : 0;
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
