/* SPDX-License-Identifier: Apache-2.0 */
/* Pages are cut, and their pieces come out of the columns as they were. tests/test_trace_columns.py reads the same on the host. */
#include "trace/columns.h"
#include "trace/pages.h"
#include "trace/pieces.h"

#include "check.h"

#include <string.h>

enum { SIZE = 4096, DATA = 16, ROOM = SIZE - DATA, MOST = 512, FIRST = 1000 };

static const struct page_layout layout = { SIZE, 8, 8, DATA };
static uint8_t page[SIZE];
static uint32_t length;
static uint64_t now, times[MOST]; /* of the events of the page */
static int n_events;

static void put_word(uint32_t word)
{
	CHECK(length + 4 <= ROOM);
	memcpy(page + DATA + length, &word, 4);
	length += 4;
}

static void put_head(uint32_t type, uint32_t delta)
{
	const uint16_t one = 1;

	put_word(*(const char *)&one ? type | delta << 5 : type << 27 | delta);
}

static void put_event(uint32_t delta, uint16_t event, uint32_t words)
{
	now += delta;
	times[n_events++] = now;
	if (words <= 28) {
		put_head(words, delta);
	} else {
		put_head(0, delta);
		put_word(4 * words + 4);
	}
	for (uint32_t i = 0; i < words; i++)
		put_word(i ? (uint32_t)n_events * 7919u + i : event | (uint32_t)event << 16);
}

static void put_time(uint32_t type, uint64_t value)
{
	put_head(type, value & ((1u << 27) - 1));
	put_word((uint32_t)(value >> 27));
	now = type == ENTRY_TIME_EXTEND ? now + value : value;
}

static void begin(void)
{
	memset(page, 0, sizeof(page));
	length = 0;
	now = FIRST;
	n_events = 0;
	memcpy(page, &now, 8);
}

static void end(void)
{
	uint64_t commit = length;

	memcpy(page + layout.commit, &commit, 8);
}

/* Events of several kinds, some at the same time, with each way to tell the time between them. */
static void make_page(uint64_t *state)
{
	begin();
	while (length < ROOM - 240 && n_events < MOST) {
		switch (random_below(state, 8)) {
		case 0:
			put_time(ENTRY_TIME_EXTEND, ((uint64_t)1 << 27) + (uint64_t)random_below(state, 1000));
			break;
		case 1:
			put_time(ENTRY_TIME_STAMP, now + (uint64_t)random_below(state, 1 << 20));
			break;
		case 2:
			put_event((uint32_t)random_below(state, 100), 4, 29 + (uint32_t)random_below(state, 10));
			break;
		default:
			put_event((uint32_t)random_below(state, 3), (uint16_t)(300 + random_below(state, 9)), 2 + (uint32_t)random_below(state, 8));
		}
	}
	end();
}

/* How many events a cut has. The times of all are those of the page. */
static int check_cut(const struct page_cut *cut)
{
	uint64_t time = FIRST;
	int n = 0, event = 0;

	for (uint32_t place = 0; place < cut->to.at;) {
		if (place == cut->from.at)
			CHECK(time == cut->from.stamp);
		struct page_entry entry = page_entry(page + DATA + place, length - place, time);

		CHECK(entry.length);
		if (entry.type < ENTRY_TIME_EXTEND) {
			CHECK(times[event++] == entry.time);
			n += place >= cut->from.at;
		}
		place += entry.length;
		time = entry.time;
	}
	CHECK(time == cut->to.stamp);
	return n;
}

static int count_between(uint64_t from, uint64_t to)
{
	int n = 0;

	for (int i = 0; i < n_events; i++)
		n += times[i] >= from && times[i] <= to;
	return n;
}

static void a_cut_has_the_events_of_its_time_and_one_on_each_side(void)
{
	uint64_t state = 11;

	for (int round = 0; round < 400; round++) {
		struct page_cut cut, whole;
		uint64_t from, to;

		make_page(&state);
		from = times[random_below(&state, n_events)];
		to = from + (uint64_t)random_below(&state, (int64_t)(now - from) + 1);
		page_cut(&layout, page, from, to, &cut);
		page_cut(&layout, page, 0, UINT64_MAX, &whole);
		CHECK(whole.from.at == 0 && whole.from.stamp == FIRST && whole.to.at == length && check_cut(&whole) == n_events);
		int more = check_cut(&cut) - count_between(from, to);

		CHECK(more >= 0 && (cut.from.at == 0 || cut.from.stamp < from) && (cut.to.at == length || cut.to.stamp > to));
		CHECK(cut.from.at <= cut.to.at && cut.to.at <= length);
	}
}

static void a_short_cut_is_short(void)
{
	struct page_cut cut;

	begin();
	for (int i = 0; i < 100; i++)
		put_event(10, 300, 3);
	end();
	page_cut(&layout, page, times[50], times[52], &cut);
	CHECK(check_cut(&cut) == 5 && cut.from.stamp == times[48] && cut.to.stamp == times[53]);
	page_cut(&layout, page, 1, 2, &cut);
	CHECK(check_cut(&cut) == 1 && cut.from.at == 0);
	page_cut(&layout, page, times[99] + 5, times[99] + 6, &cut);
	CHECK(check_cut(&cut) == 1 && cut.to.at == length);
}

/* Whatever windows there are: their pieces have each event once, in order, and every window finds all of its own. */
static void pieces_have_each_event_once(void)
{
	uint64_t state = 5;

	for (int round = 0; round < 300; round++) {
		struct page_pieces pieces = { 0 };
		uint32_t bytes = 0;

		make_page(&state);
		for (int window = 0; window < 12; window++) {
			struct page_cut cut, whole, added[2];
			uint64_t from = times[random_below(&state, n_events)];

			page_cut(&layout, page, from, from + (uint64_t)random_below(&state, 200), &cut);
			page_cut(&layout, page, 0, UINT64_MAX, &whole);
			int n = pieces_add(&pieces, &cut, &whole, added);

			CHECK(n <= 2 && pieces.n <= PIECES_MOST);
			for (int i = 0; i < n; i++) {
				bytes += added[i].to.at - added[i].from.at;
				check_cut(&added[i]);
			}
			CHECK(bytes == pieces.end.at - pieces.begins[0].at);
			int first = pieces_first(&pieces, &cut), behind = pieces_behind(&pieces, &cut);

			CHECK(first < behind && pieces.begins[first].at <= cut.from.at);
			CHECK(behind < pieces.n ? pieces.begins[behind].at >= cut.to.at : pieces.end.at >= cut.to.at);
			for (int i = 1; i < pieces.n; i++)
				CHECK(pieces.begins[i - 1].at < pieces.begins[i].at && pieces.begins[i - 1].stamp < pieces.begins[i].stamp);
		}
	}
}

static uint64_t take(const struct bytes *bytes, size_t *at, int size)
{
	uint64_t value = 0;

	CHECK(*at + (size_t)size <= bytes->length);
	for (int i = 0; i < size; i++)
		value |= (uint64_t)bytes->data[(*at)++] << 8 * i;
	return value;
}

/* Reads them as docs/record-format.md says, into pieces that follow each other in `out`. */
static size_t read_columns(const struct bytes *bytes, uint8_t *out)
{
	static size_t begins[COLUMNS_ENTRIES + 1];
	static uint8_t types[COLUMNS_KINDS];
	static uint16_t words[COLUMNS_KINDS];
	size_t at = 0, entries = 0, total = 0;
	int n = (int)take(bytes, &at, 2);

	for (int i = 0; i < n; i++) {
		CHECK(take(bytes, &at, 2) == 3 && take(bytes, &at, 1) == (i == 1) && !take(bytes, &at, 1));
		entries += take(bytes, &at, 2);
		CHECK(take(bytes, &at, 8) == 77u + (unsigned)i);
	}
	int kinds = (int)take(bytes, &at, 2);

	for (int i = 0; i < kinds; i++) {
		types[i] = (uint8_t)take(bytes, &at, 1);
		words[i] = (uint16_t)take(bytes, &at, 2);
	}
	const uint8_t *kind_of = bytes->data + at, *deltas = kind_of + entries;
	const uint16_t one = 1;

	at += 5 * entries;
	for (size_t i = 0; i < entries; i++) {
		uint32_t delta = deltas[i] | (uint32_t)deltas[i + entries] << 8 | (uint32_t)deltas[i + 2 * entries] << 16 |
				 (uint32_t)deltas[i + 3 * entries] << 24;
		uint32_t type = types[kind_of[i]], head = *(const char *)&one ? type | delta << 5 : type << 27 | delta;

		begins[i] = total;
		memcpy(out + total, &head, 4);
		total += 4 + 4u * words[kind_of[i]];
	}
	for (int kind = 0; kind < kinds; kind++)
		for (size_t column = 0; column < 4u * words[kind]; column += 8)
			for (size_t i = 0; i < entries; i++) {
				size_t width = 4u * words[kind] - column < 8 ? 4 : 8;

				if (kind_of[i] != kind)
					continue;
				memcpy(out + begins[i] + 4 + column, bytes->data + at, width);
				at += width;
			}
	CHECK(at == bytes->length);
	return total;
}

static void columns_come_out_as_they_went_in(void)
{
	static struct columns columns;
	static uint8_t pages[40][SIZE], wanted[40 * SIZE], found[40 * SIZE];
	uint64_t state = 17;

	for (int round = 0; round < 60; round++) {
		struct bytes bytes = { NULL, 0, 0, false };
		size_t total = 0;
		int n = 0;

		for (; n < 40; n++) {
			make_page(&state);
			memcpy(pages[n], page, SIZE);
			struct piece piece = { (uint64_t)(77 + n), 3, n == 1, pages[n] + DATA, length };

			if (!columns_add(&columns, &piece))
				break;
			memcpy(wanted + total, pages[n] + DATA, length);
			total += length;
		}
		CHECK(n > 8 && n < 40 && columns.n_kinds > 60 && columns.n_kinds <= COLUMNS_KINDS);
		put_columns(&bytes, &columns);
		CHECK(!bytes.failed && read_columns(&bytes, found) == total && !memcmp(wanted, found, total));
		CHECK(!columns.n_pieces && !columns.n_entries && !columns.length);
		bytes_free(&bytes);
	}
}

/* Nothing beyond the page is touched, whatever stands on it. */
static void damaged_pages_end_early(void)
{
	static struct columns columns;
	uint64_t state = 23;

	for (int round = 0; round < 2000; round++) {
		struct page_cut cut;
		struct bytes bytes = { NULL, 0, 0, false };

		for (size_t i = 0; i < sizeof(page); i++)
			page[i] = (uint8_t)random_below(&state, 256);
		page_cut(&layout, page, 0, UINT64_MAX, &cut);
		CHECK(cut.from.at == 0 && cut.to.at <= ROOM);
		struct piece piece = { 1, 0, false, page + DATA, cut.to.at };

		CHECK(columns_add(&columns, &piece));
		put_columns(&bytes, &columns);
		bytes_free(&bytes);
	}
}

/* A damaged page with more kinds than there is room for ends early, and is in nobody's way. */
static void too_many_kinds_end_a_page(void)
{
	static struct columns columns;
	static uint8_t many[COLUMNS_MOST], plain[16];
	const uint16_t one = 1;
	const bool little = *(const char *)&one;
	size_t at = 0;

	for (uint32_t i = 0; i < 260; i++) { /* 60 events, and 100 lengths of two types */
		uint32_t type = i < 60 ? 1 : i % 2 ? 0 : ENTRY_PADDING, head = little ? type | 1u << 5 : type << 27 | 1;
		uint32_t size = i < 60 ? 4 : 4 * (i / 2 - 29), told = i < 60 ? i | i << 16 : size;

		CHECK(at + 4 + size <= sizeof(many));
		memcpy(many + at, &head, 4);
		memcpy(many + at + 4, &told, 4);
		at += 4 + size;
	}
	uint32_t head = little ? 3 : 3u << 27;

	memcpy(plain, &head, 4);
	struct piece damaged = { 1, 0, false, many, at }, sound = { 2, 0, false, plain, sizeof(plain) };
	struct bytes bytes = { NULL, 0, 0, false };

	CHECK(columns_add(&columns, &damaged) && columns.n_kinds == COLUMNS_KINDS && columns.n_entries == COLUMNS_KINDS);
	CHECK(!columns_add(&columns, &sound));
	put_columns(&bytes, &columns);
	CHECK(columns_add(&columns, &sound) && columns.n_kinds == 1 && columns.n_pieces == 1);
	CHECK(!columns_add(&columns, &damaged) && columns.n_kinds == 1 && columns.n_entries == 1);
	bytes_free(&bytes);
}

int main(void)
{
	a_cut_has_the_events_of_its_time_and_one_on_each_side();
	a_short_cut_is_short();
	pieces_have_each_event_once();
	columns_come_out_as_they_went_in();
	damaged_pages_end_early();
	too_many_kinds_end_a_page();
	return EXIT_SUCCESS;
}
