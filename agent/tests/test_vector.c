/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record from made-up input has the same bytes on every machine: those of tests/data/golden/vector-1.2.rtrec, whose samples
 * tests/test_golden.py holds against its summaries, seconds, largest values and levels.
 * usage: test_vector [FILE]    with FILE it only writes the record there
 */
#include "system/sys.h"

#include "measure/capture.h"

#include "check.h"
#include "decode.h"
#include "scratch.h"

enum { ON_GRID = 1, SAMPLES = 2, EXTERNAL = 4, LOOP = 8, JUDGED = 16 };
enum { ACTIVATIONS = 6000, FLUSH_EVERY = 2000, SERIES_MOST = 5 };

#define PERIOD_NS 1000000
#define ORIGIN_NS 1600000000123456789

static const int flags_of[SERIES_MOST] = {
	ON_GRID | SAMPLES, SAMPLES, ON_GRID, EXTERNAL | LOOP | SAMPLES, ON_GRID | SAMPLES | JUDGED,
};
static const int64_t limits_ns[] = { 30 * PERIOD_NS, 59000 };
static struct above above;
static struct capture captures[SERIES_MOST];
static struct record record;

static void write_begin(void)
{
	struct bytes *chunk = chunk_begin(&record, CHUNK_BEGIN);

	put_u32(chunk, 1 | 2 << 16); /* major 1, minor 2 */
	put_bytes(chunk, "0123456789abcdef", 16);
	put_i64(chunk, ORIGIN_NS);
	put_i64(chunk, 123456789);
	put_string(chunk, "vector");
	put_string(chunk, "any");
	put_string(chunk, "none");
	put_string(chunk, "");
	CHECK(chunk_end(&record) == 0);
}

static void open_series(uint16_t series, int flags)
{
	const char *const texts[] = { "made up", flags & ON_GRID ? "on the grid" : flags & EXTERNAL ? "from outside" : "off the grid", "latency", "ns" };
	struct bytes *chunk = chunk_begin(&record, CHUNK_SERIES);

	put_u32(chunk, (uint32_t)series << 16 | series);
	put_number(chunk, series ? series : (uint64_t)-1, 4);
	put_u8(chunk, (uint8_t)(flags & ~JUDGED));
	put_i64(chunk, PERIOD_NS);
	put_i64(chunk, series);
	for (int i = 0; i < 4; i++)
		put_string(chunk, texts[i]);
	CHECK(chunk_end(&record) == 0);
	if (flags & JUDGED) {
		above_open(&above, series, limits_ns, 2, series);
		above_announce(&above, &record, series);
	}
	capture_open(&captures[series], series, flags & (ON_GRID | EXTERNAL), flags & SAMPLES, PERIOD_NS, series);
	captures[series].above = flags & JUDGED ? &above : NULL;
}

static void feed(struct capture *capture, int64_t value, uint32_t missed, uint32_t kind)
{
	const struct ring_entry entry = { value, missed, kind };

	CHECK(capture_add(capture, &record, &entry) == 0);
}

/* Mostly some ten microseconds; some early, some so late that others are missed, and, where no due time follows from it, the most that there can be. */
static int64_t value_of(int i, bool by_period, uint64_t *state)
{
	int64_t low = random_below(state, 20000), high = random_below(state, 50000000);

	if (by_period && i % 1503 == 1502)
		return i % 2 ? INT64_MAX / 32 : INT64_MIN / 32;
	if (i % 1009 == 1008)
		return PERIOD_NS + high;
	return i % 97 == 96 ? -low : 40000 + low;
}

static void write_values(struct capture *capture, int flags, uint64_t state)
{
	for (int i = 0; i < ACTIVATIONS; i++) {
		int64_t value = value_of(i, capture->by_period, &state);
		bool is_late = value >= PERIOD_NS && value < INT64_MAX / 32;

		feed(capture, value, is_late ? (uint32_t)(value / PERIOD_NS) : 0, RING_SAMPLE);
		if (i % 2501 == 2500) {
			feed(capture, i % 100 + 1, 0, RING_LOST);
			if (!(flags & ON_GRID))
				feed(capture, capture->due_ns + 4321, 0, RING_DUE);
		}
		if (flags & EXTERNAL && i % 701 == 700) /* it has drifted away */
			feed(capture, capture->due_ns + PERIOD_NS / 8, 0, RING_DUE);
		if (flags & JUDGED && i == 5100) /* a minute is over */
			feed(capture, 60000, 0, RING_LOST);
		if (i % FLUSH_EVERY == FLUSH_EVERY - 1)
			CHECK(capture_flush(capture, &record, i / FLUSH_EVERY != 1) == 0);
	}
}

static void write_counter(void)
{
	struct bytes *chunk = chunk_begin(&record, CHUNK_COUNTER);

	put_u32(chunk, 0); /* number 0, grows */
	put_string(chunk, "load.made_up");
	put_string(chunk, "pieces");
	CHECK(chunk_end(&record) == 0);
	for (int64_t second = 0; second < 3; second++) {
		chunk = chunk_begin(&record, CHUNK_TICK);
		put_i64(chunk, second * NS_PER_SECOND);
		put_u32(chunk, 1); /* one counter, number 0 */
		put_i64(chunk, second * second);
		CHECK(chunk_end(&record) == 0);
	}
}

static void write_end(void)
{
	struct bytes *chunk = chunk_begin(&record, CHUNK_END);

	put_i64(chunk, 10 * NS_PER_SECOND);
	put_u8(chunk, END_AS_ASKED);
	put_string(chunk, "");
	put_u16(chunk, SERIES_MOST);
	for (int i = 0; i < SERIES_MOST; i++) {
		const uint64_t totals[] = { captures[i].obtained, captures[i].missed, captures[i].lost };

		put_u16(chunk, (uint16_t)i);
		for (int j = 0; j < 3; j++)
			put_number(chunk, totals[j], 8);
	}
	CHECK(chunk_end(&record) == 0);
}

static void write_all(const char *path)
{
	CHECK(record_open(&record, path) == 0);
	write_begin();
	for (int i = 0; i < SERIES_MOST; i++)
		open_series((uint16_t)i, flags_of[i]);
	write_counter();
	CHECK(record_fact(&record, -5, WHOLE_RUN, MOMENT_ASKED, "period_ns", "%d", PERIOD_NS) == 0);
	CHECK(record_file(&record, -4, MOMENT_START, "/there/is/no/such/file") == 0);
	for (int i = 0; i < SERIES_MOST; i++)
		write_values(&captures[i], flags_of[i], (uint64_t)i);
	CHECK(record_event(&record, 9 * NS_PER_SECOND, 1, "kernel", "caf\xc3\xa9") == 0);
	write_end();
	CHECK(record_close(&record) == 0);
}

/* The length and the CRC-32 of the golden file. */
static void the_bytes_are_the_golden_ones(void)
{
	struct reader reader = read_whole(scratch_path);
	size_t length = (size_t)(reader.end - reader.at);

	CHECK(length == 87716 && crc32_update(0, reader.at, length) == 0xb211bb11);
	free((void *)(uintptr_t)reader.at);
}

int main(int argc, char **argv)
{
	write_all(argc > 1 ? argv[1] : scratch_file());
	if (argc == 1)
		the_bytes_are_the_golden_ones();
	return EXIT_SUCCESS;
}
