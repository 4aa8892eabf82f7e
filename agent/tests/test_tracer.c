/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/timerlat/tracer.h"

#include "check.h"

#include <string.h>

#define PERIOD_NS 1000000LL

static struct latency_track track;
static struct activation out;

static struct latency_line parsed(const char *text)
{
	struct latency_line line;

	CHECK(latency_line_parse(text, &line));
	return line;
}

static void lines_are_read(void)
{
	struct latency_line line =
		parsed("          <idle>-0       [000] d.h1.     4.145437: #1     context    irq timer_latency       626 ns");

	CHECK(line.id == 1 && line.context == 0 && line.time_ns == 4145437000 && line.latency_ns == 626);
	line = parsed(" a: #9 context x-77 [011] ....1 123456789.000009: #4294967295 context thread timer_latency 4010 ns");
	CHECK(line.id == UINT32_MAX && line.context == 1 && line.time_ns == 123456789000009000 && line.latency_ns == 4010);
	CHECK(parsed("x-1 [000] ..... 4.145437: #1 context user-ret timer_latency 9 ns").context == 2);
}

static void garbage_is_none(void)
{
	static const char *const lines[] = {
		"",
		"CPU:0 [LOST 12 EVENTS]",
		"# tracer: timerlat",
		"x-1 [000] ..... 4.145437: #1 context irq timer_latency 626",
		"x-1 [000] ..... 4.145437: #1 context irq timer_lat",
		"x-1 [000] ..... 4.145437: #1 context nmi timer_latency 626 ns",
		"x-1 [000] ..... 4.145437: #1 context irq timer_latency 626 us",
		"x-1 [000] ..... 4.145437: #4294967296 context irq timer_latency 626 ns",
		"x-1 [000] ..... 4.145437: #1 context irq timer_latency 9999999999999999999 ns",
		"x-1 [000] ..... 18446744073709551615.1: #1 context irq timer_latency 626 ns",
		"x-1 [000] ..... 4_145437: #1 context irq timer_latency 626 ns",
		": #1 context irq timer_latency 626 ns",
		"45437: #1 context irq timer_latency 626 ns",
		"x-1 [000] ..... 4.145437: irq_noise: local_timer:236 start 4.145437 duration 10 ns",
	};
	struct latency_line line;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		CHECK(!latency_line_parse(lines[i], &line));
}

static void start(int fields)
{
	track = (struct latency_track){ .fields = fields, .period_ns = PERIOD_NS };
	memset(&out, 0x55, sizeof(out));
}

/* A line of the activation whose due time is the k-th, with the stamp late_ns after the latency. */
static bool add(uint32_t id, int context, int64_t k, int64_t latency_ns, int64_t late_ns)
{
	const struct latency_line line = { id, context, (k + 5) * PERIOD_NS + latency_ns + late_ns, latency_ns };

	return latency_track_add(&track, &line, &out);
}

static bool add_both(uint32_t id, int64_t k, int64_t irq_ns, int64_t thread_ns)
{
	CHECK(!add(id, 0, k, irq_ns, 100));
	return add(id, 1, k, thread_ns, 300);
}

static bool is_out(int64_t k, int64_t irq_ns, int64_t thread_ns, uint32_t lost, uint32_t missed)
{
	return out.due_ns == (k + 5) * PERIOD_NS + 100 && out.values[0] == irq_ns && out.values[1] == thread_ns &&
	       out.lost == lost && out.missed == missed;
}

static void two_lines_are_an_activation(void)
{
	start(2);
	CHECK(!add_both(1, 0, 600, 4000));
	CHECK(add_both(2, 1, 700, 4100) && is_out(0, 600, 4000, 0, 0));
	CHECK(latency_track_flush(&track, &out) && is_out(1, 700, 4100, 0, 0));
	CHECK(!latency_track_flush(&track, &out));
}

static void three_lines_are_one_with_a_user(void)
{
	start(3);
	CHECK(!add(7, 0, 0, 600, 100) && !add(7, 1, 0, 4000, 100) && !add(7, 2, 0, 9000, 100));
	CHECK(latency_track_flush(&track, &out) && is_out(0, 600, 4000, 0, 0) && out.values[2] == 9000);
}

/* Successive numbers: the tracer left the due times out that had passed. */
static void due_times_left_out_are_missed(void)
{
	start(2);
	CHECK(!add_both(UINT32_MAX, 0, 600, 3 * PERIOD_NS + 1));
	CHECK(add_both(0, 4, 700, 4100) && is_out(0, 600, 3 * PERIOD_NS + 1, 0, 3));
	CHECK(add_both(1, 5, 700, 4100) && is_out(4, 700, 4100, 0, 0));
}

static void numbers_left_out_are_lost(void)
{
	start(2);
	CHECK(!add_both(1, 0, 600, 4000));
	CHECK(add_both(6, 7, 700, 4100) && is_out(0, 600, 4000, 0, 0));
	CHECK(add_both(7, 8, 800, 4200) && is_out(7, 700, 4100, 6, 0));
}

static void an_activation_without_all_lines_is_lost(void)
{
	start(2);
	CHECK(!add_both(1, 0, 600, 4000));
	CHECK(!add(2, 0, 1, 600, 100)); /* its other line is gone */
	CHECK(!add(3, 1, 2, 4000, 100)); /* and its first one */
	CHECK(add_both(4, 3, 700, 4100) && is_out(0, 600, 4000, 0, 0));
	CHECK(!add(4, 1, 3, 4100, 100)); /* twice */
	CHECK(latency_track_flush(&track, &out) && is_out(3, 700, 4100, 2, 0));
}

/* An interrupted stamp comes late; the due time is not. An early one corrects it. */
static void due_times_keep_to_the_period(void)
{
	start(2);
	CHECK(!add_both(1, 0, 600, 4000));
	CHECK(!add(2, 0, 1, 600, 400000) && add(2, 1, 1, 4000, 100));
	CHECK(!add(3, 0, 2, 600, 40) && add(3, 1, 2, 4000, 100) && is_out(1, 600, 4000, 0, 0));
	CHECK(latency_track_flush(&track, &out) && out.due_ns == 7 * PERIOD_NS + 40);
}

static void a_clock_that_goes_back_gives_nothing(void)
{
	start(2);
	CHECK(!add_both(1, 3, 600, 4000));
	CHECK(!add_both(2, 3, 600, 4000) && !add_both(3, -4, 600, 4000));
	CHECK(add_both(4, 5, 600, 4000) && is_out(3, 600, 4000, 0, 0));
	CHECK(latency_track_flush(&track, &out) && out.lost == 1);
}

int main(void)
{
	lines_are_read();
	garbage_is_none();
	two_lines_are_an_activation();
	three_lines_are_one_with_a_user();
	due_times_left_out_are_missed();
	numbers_left_out_are_lost();
	an_activation_without_all_lines_is_lost();
	due_times_keep_to_the_period();
	a_clock_that_goes_back_gives_nothing();
	return EXIT_SUCCESS;
}
