/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of made-up pages. */
#include "system/sys.h"

#include "trace/windows.h"

#include "check.h"

#include <string.h>

enum { SIZE = 64, DATA = 16, CPUS = 2, LANE = 8, HELD = 12, MS = 1000000 };

static const struct page_layout layout = { SIZE, 8, 8, DATA };
static struct windows of_test, *const windows = &of_test;
static struct windows_plan plan;

static void begin(int top, int ordinary)
{
	plan = (struct windows_plan){ .cpus = CPUS, .lane_pages = LANE, .held_pages = HELD, .top = top, .ordinary = ordinary };
	windows_close(windows);
	CHECK(windows_open(windows, &plan, &layout, 7) == 0);
}

static void read_page(int cpu, int64_t begins_ns, bool lost)
{
	uint8_t *page = windows_room(windows);
	uint64_t stamp = (uint64_t)begins_ns + 1000, commit = 8 | (lost ? 1u << 31 : 0);

	memcpy(page, &stamp, 8);
	memcpy(page + 8, &commit, 8);
	memset(page + DATA, cpu + 1, SIZE - DATA);
	windows_add(windows, cpu, begins_ns);
}

/* Pages of every CPU, one each ms. */
static void read_pages(int first_ms, int last_ms)
{
	for (int ms = first_ms; ms <= last_ms; ms++)
		for (int cpu = 0; cpu < CPUS; cpu++) {
			read_page(cpu, (int64_t)ms * MS, false);
			windows_read_to(windows, cpu, (int64_t)ms * MS);
		}
}

static void want(uint64_t index, int from_ms, int to_ms, int64_t value, int64_t threshold)
{
	const struct wanted wanted = {
		.cpu = 0, .index = index, .due_ns = (int64_t)from_ms * MS, .value = value,
		.from_ns = (int64_t)from_ms * MS + MS / 2, .to_ns = (int64_t)to_ms * MS + MS / 2,
	};

	windows_offer(windows, &wanted, threshold);
	windows_claim(windows, false);
}

static int by_due_time(const void *a, const void *b)
{
	const struct window *one = *(struct window *const *)a, *other = *(struct window *const *)b;

	return (one->of.due_ns > other->of.due_ns) - (one->of.due_ns < other->of.due_ns);
}

static int list(struct window **order)
{
	int n = 0;

	for (int i = 0; i < windows->n_windows; i++)
		if (windows->windows[i].used)
			order[n++] = &windows->windows[i];
	if (n)
		qsort(order, (size_t)n, sizeof(struct window *), by_due_time);
	return n;
}

static uint64_t lost(void)
{
	uint64_t n = 0;

	for (int i = 0; i < LOSSES; i++)
		n += windows->lost[i];
	return n;
}

static int64_t stamp_ms(const struct window *window, int cpu, int page)
{
	uint32_t slot = window->lanes[cpu].first;

	CHECK(page < window->lanes[cpu].pages);
	while (page--)
		slot = windows->slots[slot].next;
	CHECK(windows->slots[slot].cpu == cpu && windows_page(windows, slot)[DATA] == cpu + 1);
	return ((int64_t)windows->slots[slot].stamp - 1000) / MS;
}

static void a_window_has_the_pages_of_its_time_and_waits_for_the_last(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	read_pages(1, 5);
	want(10, 3, 6, 100, 50);
	CHECK(list(order) == 0 && windows->n_waiting == 1);
	read_pages(6, 7);
	windows_claim(windows, false);
	CHECK(list(order) == 1 && windows->n_waiting == 0 && order[0]->of.index == 10);
	for (int cpu = 0; cpu < CPUS; cpu++) {
		CHECK(order[0]->lanes[cpu].whole && order[0]->lanes[cpu].pages == 4);
		CHECK(stamp_ms(order[0], cpu, 0) == 3 && stamp_ms(order[0], cpu, 3) == 6);
	}
}

static void a_window_begins_later_on_cpus_that_its_thread_never_uses(void)
{
	struct window *order[WINDOWS_MOST];
	struct wanted wanted = { .cpu = 0, .value = 100, .from_ns = 3 * MS + MS / 2, .to_ns = 6 * MS + MS / 2, .others_from_ns = 5 * MS + MS / 2 };

	begin(4, 0);
	read_pages(1, 7);
	windows_offer(windows, &wanted, 50);
	windows_claim(windows, false);
	CHECK(list(order) == 1 && stamp_ms(order[0], 0, 0) == 3 && stamp_ms(order[0], 1, 0) == 5);
	CHECK(order[0]->lanes[0].pages == 4 && order[0]->lanes[1].pages == 2 && order[0]->lanes[1].whole);
	CHECK(wanted_from_ns(&wanted, 0) == wanted.from_ns && wanted_from_ns(&wanted, 1) == wanted.others_from_ns);
	wanted.cpu = -1; /* it may run anywhere */
	CHECK(wanted_from_ns(&wanted, 1) == wanted.from_ns);
	wanted.cpu = 0;
	wanted.others_from_ns = 2 * MS;
	CHECK(wanted_from_ns(&wanted, 1) == wanted.from_ns);
}

/* All that a window has stays, whatever is read later; two windows have the pages between them but once. */
static void pages_of_windows_outlive_all_others(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	read_pages(1, 5);
	want(1, 2, 3, 100, 50);
	want(2, 3, 4, 200, 50);
	read_pages(6, 500);
	CHECK(list(order) == 2 && stamp_ms(order[0], 1, 0) == 2 && stamp_ms(order[1], 1, 1) == 4);
	CHECK(windows->held == 6);
	CHECK(windows->pages_read == 2 * 500);
}

static void what_is_not_there_any_more_is_told(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	read_pages(1, 20);
	want(1, 5, 14, 100, 50); /* the newest eight begin at 13 */
	CHECK(list(order) == 1 && !order[0]->lanes[0].whole && stamp_ms(order[0], 0, 0) == 13);
	want(2, 5, 8, 100, 50);
	CHECK(list(order) == 2 && !order[1]->lanes[0].whole && order[1]->lanes[0].pages == 0);
}

static void events_that_the_kernel_lost_are_told_where_they_matter(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	read_pages(1, 3);
	read_page(0, 4 * MS, true);
	windows_read_to(windows, 0, 4 * MS);
	windows_read_to(windows, 1, 4 * MS);
	read_pages(5, 8);
	want(1, 5, 6, 100, 50); /* after the loss */
	want(2, 4, 6, 100, 50); /* it begins on the page behind the loss */
	want(3, 3, 5, 100, 50);
	want(4, 2, 3, 100, 50); /* the events that are lost may be of its last half of a millisecond */
	want(5, 1, 2, 100, 50);
	CHECK(list(order) == 5);
	for (int i = 0; i < 5; i++) {
		CHECK(order[i]->lanes[0].whole == (order[i]->of.index != 3 && order[i]->of.index != 4));
		CHECK(order[i]->lanes[1].whole);
	}
}

static void at_the_end_nothing_waits_and_what_was_not_read_is_told(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	read_pages(1, 5);
	want(1, 4, 9, 100, 50);
	windows_claim(windows, true);
	CHECK(list(order) == 1 && !order[0]->lanes[0].whole && order[0]->lanes[0].pages == 2);
}

static void a_cpu_without_events_is_whole_without_pages(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	read_page(0, MS, false);
	windows_read_to(windows, 0, 9 * MS);
	windows_read_to(windows, 1, 9 * MS);
	want(1, 2, 3, 100, 50);
	CHECK(list(order) == 1 && order[0]->lanes[1].whole && order[0]->lanes[1].pages == 0);
	CHECK(order[0]->lanes[0].whole && stamp_ms(order[0], 0, 0) == 1);
}

/* A window of two pages a CPU is four of the twelve that are held. */
static void the_latest_stay_when_memory_ends(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	for (int i = 0; i < 50; i++) {
		int at = 10 * i;

		read_pages(at + 1, at + 3);
		want((uint64_t)i, at + 1, at + 2, 1000 + (i * 37) % 50, 999);
		CHECK(windows->held <= HELD && windows->n_free + 1 + windows->held <= windows->n_slots);
	}
	CHECK(list(order) == 3 && windows->above == 50 && windows->lost[LOST_MEMORY] == 47 && lost() == 47);
	for (int i = 0; i < 3; i++)
		CHECK(order[i]->of.value >= 1047 && order[i]->of.reason == WINDOW_THRESHOLD && order[i]->lanes[0].whole);
}

static void a_window_above_the_threshold_takes_the_place_of_the_largest_below(void)
{
	struct window *order[WINDOWS_MOST];

	begin(3, 0);
	for (int i = 0; i < 3; i++) {
		read_pages(10 * i + 1, 10 * i + 3);
		want((uint64_t)i, 10 * i + 1, 10 * i + 2, 900 + i, 999);
	}
	CHECK(list(order) == 3 && order[0]->of.reason == WINDOW_TOP);
	read_pages(101, 103);
	want(3, 101, 102, 1000, 999);
	CHECK(list(order) == 3 && order[2]->of.reason == WINDOW_THRESHOLD && order[0]->of.value == 901);
	read_pages(201, 203);
	want(4, 201, 202, 5, 999);
	CHECK(list(order) == 3 && order[0]->of.value == 901);
}

static void only_so_many_of_the_largest_stay(void)
{
	struct window *order[WINDOWS_MOST];

	begin(2, 0);
	for (int i = 0; i < 20; i++) {
		read_pages(10 * i + 1, 10 * i + 2);
		want((uint64_t)i, 10 * i + 1, 10 * i + 1, (i * 7) % 20, INT64_MAX);
	}
	CHECK(list(order) == 2 && windows->tops == 2 && windows->above == 0);
	CHECK(order[0]->of.value + order[1]->of.value == 19 + 18);
}

/* Before the first pages have been read nobody knows which ones are the largest. */
static void who_is_not_among_the_largest_after_all_is_ordinary(void)
{
	struct window *order[WINDOWS_MOST];

	begin(1, 2);
	for (int i = 0; i < 3; i++)
		want((uint64_t)i, i + 1, i + 1, 100 - i, INT64_MAX);
	read_pages(1, 6);
	windows_claim(windows, false);
	CHECK(list(order) == 3 && order[0]->of.reason == WINDOW_TOP);
	CHECK(order[1]->of.reason == WINDOW_ORDINARY && order[2]->of.reason == WINDOW_ORDINARY);
}

/* One of each half of the run, on average: counted over many seeds, each tenth of it gets its share. */
static void the_ordinary_are_a_fair_draw(void)
{
	enum { RUNS = 400, LENGTH = 200, TENTHS = 10 };
	struct window *order[WINDOWS_MOST];
	int of_tenth[TENTHS] = { 0 };

	begin(0, 2);
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		CHECK((windows_close(windows), windows_open(windows, &plan, &layout, seed * 7919)) == 0);
		for (int i = 0; i < LENGTH; i++) {
			read_pages(2 * i + 1, 2 * i + 2);
			want((uint64_t)i, 2 * i + 1, 2 * i + 1, 5, INT64_MAX);
		}
		int n = list(order);

		CHECK(n == 2 && order[0]->of.reason == WINDOW_ORDINARY && order[0]->of.index != order[1]->of.index);
		for (int k = 0; k < n; k++)
			of_tenth[order[k]->of.index * TENTHS / LENGTH]++;
	}
	for (int i = 0; i < TENTHS; i++) /* 80 each; five standard deviations are 43 */
		CHECK(of_tenth[i] > 80 - 43 && of_tenth[i] < 80 + 43);
}

static void of_many_cpus_a_window_has_its_own(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	plan.own_cpu_only = true;
	CHECK((windows_close(windows), windows_open(windows, &plan, &layout, 1)) == 0);
	read_pages(1, 5);
	want(1, 2, 3, 100, 50);
	CHECK(list(order) == 1 && order[0]->lanes[0].asked && !order[0]->lanes[1].asked && order[0]->lanes[1].pages == 0);
}

static void before_the_trace_there_is_no_window(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 1);
	windows->began_ns = 3 * MS;
	read_pages(3, 8);
	want(1, 2, 4, 100, 50);
	CHECK(list(order) == 0 && windows->above == 1 && windows->lost[LOST_BEFORE] == 1);
	want(2, 3, 4, 100, 50);
	CHECK(list(order) == 1);
}

static void more_than_can_wait_is_not_kept(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	read_pages(1, 5);
	for (int i = 0; i < WINDOWS_WAITING + 10; i++)
		want((uint64_t)i, 4, 90, 100 + i, 50);
	CHECK(windows->n_waiting == WINDOWS_WAITING && windows->above == WINDOWS_WAITING + 10);
	windows_claim(windows, true);
	CHECK(windows->n_waiting == 0 && list(order) >= 1 && windows->held <= HELD);
	CHECK(windows->lost[LOST_QUEUE] == 10 && lost() + (uint64_t)list(order) == windows->above);
}

/* Also where many are handed over at once, as after a long flush of the record. */
static void as_many_as_come_find_room_if_their_pages_are_there(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	read_pages(1, 5);
	for (int i = 0; i < 2 * WINDOWS_WAITING; i++) {
		const struct wanted wanted = { .index = (uint64_t)i, .due_ns = i, .value = 100 + i, .from_ns = 2 * MS, .to_ns = 3 * MS };

		windows_offer(windows, &wanted, 50);
	}
	windows_claim(windows, false);
	CHECK(list(order) == HELD && order[0]->of.index == 2 * WINDOWS_WAITING - HELD);
}

/* What is in the record needs no memory, so that however many come all find room, each page once. */
static void those_that_are_written_make_room(void)
{
	begin(4, 0);
	for (int i = 0; i < 50; i++) {
		int at = 10 * i;

		read_pages(at + 1, at + 4);
		want(2 * (uint64_t)i, at + 1, at + 2, 1000 + i, 999);
		want(2 * (uint64_t)i + 1, at + 2, at + 3, 5000 - i, 999);
		struct window *first = windows_largest(windows, WINDOW_THRESHOLD);

		CHECK(first && first->of.index == (uint64_t)(2 * i + 1) && windows->held == 6);
		windows_take(first);
		CHECK(windows_largest(windows, WINDOW_THRESHOLD) != first && windows_fits_one_more(windows) == false);
		windows_written(windows, first);
		struct window *second = windows_largest(windows, WINDOW_THRESHOLD);

		CHECK(second && second->of.index == (uint64_t)(2 * i) && windows->held == 4);
		windows_written(windows, second);
		CHECK(!windows_largest(windows, WINDOW_THRESHOLD) && windows->held == 0);
	}
	CHECK(windows->above == 100 && lost() == 0);
}

/* One that found no room must not keep others out when there is room again. */
static void a_window_without_room_keeps_nobody_out_for_ever(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	for (int i = 0; i < 4; i++) {
		read_pages(10 * i + 1, 10 * i + 3);
		want((uint64_t)i, 10 * i + 1, 10 * i + 2, 1000 - i, 500);
	}
	CHECK(list(order) == 3 && windows->lost[LOST_MEMORY] == 1 && windows->floor == 997);
	windows_written(windows, windows_largest(windows, WINDOW_THRESHOLD));
	read_pages(101, 103);
	want(4, 101, 102, 600, 500);
	CHECK(list(order) == 3 && order[2]->of.value == 600 && lost() == 1);
	CHECK(windows_count(windows, WINDOW_THRESHOLD) == 3 && windows_count(windows, WINDOW_TOP) == 0);
}

/* What is about to be written stays, even if a later window needs its memory. */
static void a_window_that_is_taken_is_not_given_up(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	read_pages(1, 9);
	CHECK(windows_fits_one_more(windows));
	want(1, 2, 4, 600, 500);
	windows_take(windows_largest(windows, WINDOW_THRESHOLD));
	want(2, 5, 8, 900, 500);
	CHECK(list(order) == 1 && order[0]->of.index == 1 && windows->lost[LOST_MEMORY] == 1);
	windows_written(windows, order[0]);
	want(3, 5, 8, 901, 500);
	CHECK(list(order) == 1 && order[0]->of.index == 3 && !order[0]->taken);
}

/* However long it is, it has room: of its pages the last ones, and it is not whole. */
static void a_long_window_has_its_last_pages(void)
{
	struct window *order[WINDOWS_MOST];

	begin(4, 0);
	read_pages(1, 9);
	want(1, 2, 8, 100, 50);
	CHECK(list(order) == 1 && order[0]->lanes[0].pages == HELD / CPUS && !order[0]->lanes[0].whole);
	CHECK(stamp_ms(order[0], 0, 0) == 3 && stamp_ms(order[0], 0, 5) == 8);
	read_pages(10, 19);
	want(2, 18, 18, 90, 50);
	CHECK(list(order) == 1 && windows->lost[LOST_MEMORY] == 1);
	want(3, 18, 18, 110, 50);
	CHECK(list(order) == 1 && order[0]->of.index == 3 && lost() == 2);
}

/* Heads as a kernel of 32 bits makes them, in the byte order of the machine on which this runs. */
static void pages_of_a_kernel_of_32_bits_are_understood(void)
{
	static const struct page_layout small = { SIZE, 8, 4, 12 };
	uint64_t stamp = 0x0102030405060708;
	uint32_t commit = (1u << 31) | 20, empty = 0;
	uint8_t page[SIZE] = { 0 };

	memcpy(page, &stamp, 8);
	memcpy(page + 8, &commit, 4);
	memset(page + 12, 0xff, SIZE - 12);
	struct page_head head = page_head(&small, page);

	CHECK(head.stamp == stamp && head.lost && !head.empty);
	memcpy(page + 8, &empty, 4);
	head = page_head(&small, page);
	CHECK(head.empty && !head.lost);
}

/* Whatever comes in whatever order: no slot is lost or used twice. */
static void slots_are_neither_lost_nor_used_twice(void)
{
	uint64_t state = 1, written = 0;

	begin(3, 2);
	for (int ms = 1; ms < 3000; ms++) {
		int from = ms - (int)random_below(&state, 12), pages = (int)random_below(&state, 9);

		read_page((int)random_below(&state, CPUS), (int64_t)ms * MS, !random_below(&state, 20));
		windows_read_to(windows, (int)random_below(&state, CPUS), (int64_t)ms * MS);
		want((uint64_t)ms, from, from + pages, random_below(&state, 1000), 990);
		uint32_t used = 0, newest = 0;
		struct window *late = random_below(&state, 6) ? NULL : windows_largest(windows, WINDOW_THRESHOLD);

		if (late) {
			windows_written(windows, late);
			written++;
		}

		for (uint32_t slot = 0; slot < windows->n_slots; slot++) {
			used += windows->slots[slot].users > 0;
			newest += windows->slots[slot].newest && !windows->slots[slot].users;
		}
		CHECK(used == windows->held && used <= HELD);
		CHECK(used + newest + windows->n_free + 1 == windows->n_slots);
	}
	windows_claim(windows, true);
	CHECK(written > 0 && written + lost() + windows_count(windows, WINDOW_THRESHOLD) == windows->above);
}

int main(void)
{
	a_window_has_the_pages_of_its_time_and_waits_for_the_last();
	a_window_begins_later_on_cpus_that_its_thread_never_uses();
	pages_of_windows_outlive_all_others();
	what_is_not_there_any_more_is_told();
	events_that_the_kernel_lost_are_told_where_they_matter();
	at_the_end_nothing_waits_and_what_was_not_read_is_told();
	a_cpu_without_events_is_whole_without_pages();
	the_latest_stay_when_memory_ends();
	a_window_above_the_threshold_takes_the_place_of_the_largest_below();
	only_so_many_of_the_largest_stay();
	who_is_not_among_the_largest_after_all_is_ordinary();
	the_ordinary_are_a_fair_draw();
	of_many_cpus_a_window_has_its_own();
	before_the_trace_there_is_no_window();
	more_than_can_wait_is_not_kept();
	as_many_as_come_find_room_if_their_pages_are_there();
	those_that_are_written_make_room();
	pages_of_a_kernel_of_32_bits_are_understood();
	a_window_without_room_keeps_nobody_out_for_ever();
	a_window_that_is_taken_is_not_given_up();
	a_long_window_has_its_last_pages();
	slots_are_neither_lost_nor_used_twice();
	windows_close(windows);
	return EXIT_SUCCESS;
}
