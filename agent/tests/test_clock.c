/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/clock.h"

#include "check.h"

#include <string.h>

#define MS 1000000LL

static int64_t step(int64_t passed_ns, int64_t wall_passed_ns, int64_t doubt_ns)
{
	const struct clock_pair before = { 1000 * MS, 5000 * MS, doubt_ns };
	const struct clock_pair after = { 1000 * MS + passed_ns, 5000 * MS + wall_passed_ns, doubt_ns };

	return clock_step_ns(&before, &after);
}

static void a_wall_clock_that_was_set_is_seen(void)
{
	CHECK(step(1000 * MS, 1000 * MS, 0) == 0);
	CHECK(step(1000 * MS, 61000 * MS, 0) == 60000 * MS);
	CHECK(step(1000 * MS, 1000 * MS - 5 * MS, 0) == -5 * MS);
	/* Slewing for ten seconds, and readings that were far apart, are no step. */
	CHECK(step(10000 * MS, 10005 * MS, 0) == 0);
	CHECK(step(1000 * MS, 1300 * MS, 150 * MS) == 0);
	CHECK(step(1000 * MS, 1303 * MS, 150 * MS) == 303 * MS);
}

static void time_goes_forward_at_a_known_cost(void)
{
	int64_t before_ns = clock_now_ns();
	struct clock_pair first = clock_both(), second = clock_both();

	CHECK(before_ns > 0 && first.monotonic_ns >= before_ns && second.monotonic_ns >= first.monotonic_ns);
	CHECK(first.doubt_ns >= 0 && first.wall_ns > 0);
	CHECK(clock_now_ns() >= second.monotonic_ns + second.doubt_ns);
	CHECK(clock_cost_ns() >= 0 && clock_cost_ns() < NS_PER_SECOND);
	CHECK(!strncmp(clock_name(), "CLOCK_MONOTONIC", strlen("CLOCK_MONOTONIC")));
}

/* A sleep to an absolute time of this clock never ends before it. */
static void a_sleep_ends_after_its_time(void)
{
	for (int i = 0; i < 5; i++) {
		int64_t until_ns = clock_now_ns() + MS;

		CHECK(sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, until_ns) == 0);
		CHECK(clock_now_ns() >= until_ns);
	}
	int64_t before_ns = clock_now_ns();

	CHECK(sys_sleep(CLOCK_MONOTONIC, 0, MS) == 0);
	CHECK(clock_now_ns() >= before_ns + MS);
}

/* Neither is slewed by more than a thousandth, so that they stay close together over a few milliseconds. */
static void the_raw_clock_keeps_its_distance(void)
{
	int64_t before_ns, after_ns;

	if (!clock_raw_ns(&before_ns))
		return;
	CHECK(sys_sleep(CLOCK_MONOTONIC, 0, 20000000) == 0);
	CHECK(clock_raw_ns(&after_ns));
	CHECK(after_ns - before_ns < 2000000 && before_ns - after_ns < 2000000);
}

int main(void)
{
	a_wall_clock_that_was_set_is_seen();
	for (int old_calls = 0; old_calls <= SYS_HAS_TIME32; old_calls++) {
		sys_init();
		/* 32-bit systems have two ways, and the kernel here may know both. */
		if (old_calls)
			sys_time64_works = false;
		clock_init();
		time_goes_forward_at_a_known_cost();
		a_sleep_ends_after_its_time();
	}
	the_raw_clock_keeps_its_distance();
	return EXIT_SUCCESS;
}
