/* SPDX-License-Identifier: Apache-2.0 */
/* How many values teach a level, lists that end, and what is told of a limit. What else there is of levels is in test_vector.c. */
#include "system/sys.h"

#include "measure/above_levels.h"

#include "check.h"
#include "decode.h"
#include "scratch.h"

#include <fcntl.h>
#include <string.h>

enum { SERIES = 7, SECONDS_MOST = 200, LISTED_MOST = 3 * ABOVE_LIST_MOST };

#define PERIOD_NS 1000000LL
#define FIRST_DUE_NS 250000

static const int64_t limits_ns[] = { 900000, 50000, 3600000000000 };

struct row {
	int64_t index, due_ns, value, lists;
};

struct state {
	uint64_t ran[ABOVE_LEVELS][SECONDS_MOST], missed[ABOVE_LEVELS][SECONDS_MOST];
	struct row rows[LISTED_MOST];
	uint32_t n_rows, ended, levels;
	int64_t value[ABOVE_LEVELS], since_ns[ABOVE_LEVELS];
	uint32_t share[ABOVE_LEVELS];
	uint64_t taught[ABOVE_LEVELS];
	bool learned[ABOVE_LEVELS];
};

static struct state found, expected;
static struct above above;
static struct record record;

static void open_all(int n_limits)
{
	memset(&found, 0, sizeof(found));
	memset(&expected, 0, sizeof(expected));
	CHECK(record_open(&record, scratch_file()) == 0);
	above_open(&above, SERIES, limits_ns, n_limits, FIRST_DUE_NS);
	above_announce(&above, &record, FIRST_DUE_NS);
	for (int i = 0; i < n_limits; i++)
		expected.value[expected.levels++] = limits_ns[i];
}

static void check_level(struct reader *reader)
{
	CHECK(get_number(reader, 1) == found.levels);
	found.learned[found.levels] = get_number(reader, 1) == 1;
	found.value[found.levels] = get_i64(reader);
	found.since_ns[found.levels] = get_i64(reader);
	found.share[found.levels] = (uint32_t)get_number(reader, 4);
	found.taught[found.levels++] = get_number(reader, 8);
	CHECK(reader->at == reader->end);
}

static void check_seconds(struct reader *reader)
{
	CHECK(get_number(reader, 2) == 0);
	uint64_t second = get_number(reader, 4), n = get_number(reader, 4), before = 0;

	CHECK(n > 0);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t key = get_varint(reader), ran = get_varint(reader), missed = get_varint(reader);

		CHECK(i == 0 ? key / 16 == 0 : key / 16 > 0 || key % 16 > before);
		before = key % 16;
		second += key / 16;
		CHECK(second < SECONDS_MOST && before < found.levels && ran + missed > 0);
		found.ran[before][second] += ran;
		found.missed[before][second] += missed;
	}
	CHECK(reader->at == reader->end);
}

static int64_t get_signed(struct reader *reader)
{
	uint64_t zigzag = get_varint(reader);

	return (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
}

static void check_list(struct reader *reader)
{
	uint32_t ended = (uint32_t)get_number(reader, 2), n = (uint32_t)get_number(reader, 4);
	struct row row = { 0, 0, 0, 0 };

	CHECK(!(found.ended & ended) && n > 0 && n <= ABOVE_LIST);
	for (uint32_t i = 0; i < n; i++) {
		row.index += (int64_t)get_varint(reader);
		row.due_ns += get_signed(reader);
		row.value = get_signed(reader);
		row.lists = (int64_t)get_varint(reader);
		CHECK(!(row.lists & found.ended) && found.n_rows < LISTED_MOST);
		found.rows[found.n_rows++] = row;
	}
	CHECK(reader->at == reader->end);
	found.ended |= ended;
}

static void read_back(void)
{
	above_flush(&above, &record);
	CHECK(record_close(&record) == 0);
	above_close(&above);

	struct reader reader = read_whole(scratch_path);
	const uint8_t *start = reader.at;
	struct chunk chunk;

	while (get_chunk(&reader, &chunk)) {
		CHECK(get_number(&chunk.payload, 2) == SERIES);
		if (chunk.type == CHUNK_LEVEL)
			check_level(&chunk.payload);
		else if (chunk.type == CHUNK_ABOVE)
			check_seconds(&chunk.payload);
		else if (chunk.type == CHUNK_EXCEEDED)
			check_list(&chunk.payload);
		else
			CHECK(!"a type that is about levels");
	}
	free((void *)(uintptr_t)start);
	CHECK(found.levels == expected.levels);
	CHECK(!memcmp(found.ran, expected.ran, sizeof(found.ran)));
	CHECK(!memcmp(found.missed, expected.missed, sizeof(found.missed)));
	CHECK(!memcmp(found.value, expected.value, sizeof(found.value)));
}

static void ran(int64_t index, int64_t value)
{
	int64_t due_ns = FIRST_DUE_NS + index * PERIOD_NS, second = due_ns / NS_PER_SECOND, lists = 0;

	above_ran(&above, &record, (uint64_t)index, due_ns, second, value);
	for (uint32_t i = 0; i < expected.levels; i++) {
		if (value <= expected.value[i])
			continue;
		expected.ran[i][second]++;
		if (i < (uint32_t)above.n_limits)
			lists |= 1 << i;
	}
	if (lists && expected.n_rows < LISTED_MOST)
		expected.rows[expected.n_rows++] = (struct row){ index, due_ns, value, lists };
}

/* As many activations in the first minute, and then one more. */
static void teach_with(int n)
{
	open_all(0);
	for (int64_t i = 0; i < n; i++)
		ran(60000 * i / n, 1000 + i);
	above_ran(&above, &record, 60000, FIRST_DUE_NS + 60000 * PERIOD_NS, 60, 0);
	expected.levels = (uint32_t)above.n_levels;
	memcpy(expected.value, above.levels, sizeof(expected.value));
	read_back();
}

static void few_values_teach_less(void)
{
	teach_with(4999);
	CHECK(found.levels == 0);
	teach_with(5000);
	CHECK(found.levels == 1 && found.share[0] == 1000 && found.value[0] == hist_top(hist_bin(1000 + 4994)));
	teach_with(49999);
	CHECK(found.levels == 1);
	teach_with(50000);
	CHECK(found.levels == 2 && found.value[1] == hist_top(hist_bin(1000 + 49994)));
}

/* A list ends, a count does not. */
static void no_counter_is_ever_full(void)
{
	const int64_t n = ABOVE_LIST_MOST + 4000, later = 30000;
	uint32_t listed[2] = { 0, 0 };
	uint64_t sum[2] = { 0, 0 };

	open_all(2);
	for (int64_t i = 0; i < n; i++) {
		if (i == 60000)
			while (expected.levels < 4) /* half of the first minute had this value, which is thus both percentiles */
				expected.value[expected.levels++] = hist_top(hist_bin(1000000));
		ran(i, i < later ? 60000 : 1000000);
	}
	ran(n, limits_ns[0]); /* what is as long as a limit is not above it */
	read_back();
	for (uint32_t i = 0; i < found.n_rows; i++)
		for (int limit = 0; limit < 2; limit++)
			listed[limit] += found.rows[i].lists >> limit & 1;
	for (int second = 0; second < SECONDS_MOST; second++)
		for (int limit = 0; limit < 2; limit++)
			sum[limit] += found.ran[limit][second];
	CHECK(listed[0] == n - later && listed[1] == ABOVE_LIST_MOST && found.ended == 2);
	CHECK(sum[0] == (uint64_t)(n - later) && sum[1] == (uint64_t)n + 1);
	CHECK(found.n_rows == n && found.rows[n - 1].lists == 1 && found.rows[ABOVE_LIST_MOST - 1].lists == 3);
}

/* What is told to those who watch a limit. */

static char told[4096];
static int saved;

static void listen_from_now(void)
{
	CHECK(fflush(stderr) == 0);
	saved = dup(STDERR_FILENO);
	int fd = open(scratch_file(), O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK(saved >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0 && close(fd) == 0);
}

static void expect(const char *lines)
{
	CHECK(fflush(stderr) == 0);
	ssize_t n = pread(STDERR_FILENO, told, sizeof(told) - 1, 0);

	CHECK(n >= 0 && dup2(saved, STDERR_FILENO) >= 0 && close(saved) == 0);
	told[n] = '\0';
	if (strcmp(told, lines))
		printf("told:\n%s", told);
	CHECK(!strcmp(told, lines));
}

enum { LIMIT = 1000, MS = 1000000 };

/* Of thread 3: a value that is this much above LIMIT, due at that many milliseconds. */
static void late_by(struct over *over, int64_t due_ms, int64_t beyond_ns)
{
	over_add(over, 3, LIMIT, due_ms * MS, due_ms / 1000, LIMIT + beyond_ns);
}

static void late_times_close_together_are_told_once(void)
{
	struct over over = { .count = 0 };

	listen_from_now();
	over_tell(&over, 3, LIMIT);
	late_by(&over, 7000, 1);
	late_by(&over, 7049, 4000);
	late_by(&over, 7050, 3000);
	over_tell(&over, 3, LIMIT);
	over_tell(&over, 3, LIMIT);
	expect("over thread=3 limit_ns=1000 second=7 worst_ns=5000 begin_ns=7000000000 end_ns=7050003000 count=3\n");
}

static void a_pause_or_a_new_second_tells_of_the_stretch_before(void)
{
	struct over over = { .count = 0 };

	listen_from_now();
	late_by(&over, 100, 1);
	late_by(&over, 151, 2);
	late_by(&over, 999, 3);
	late_by(&over, 1000, 4);
	over_tell(&over, 3, LIMIT);
	expect("over thread=3 limit_ns=1000 second=0 worst_ns=1001 begin_ns=100000000 end_ns=100000001 count=1\n"
	       "over thread=3 limit_ns=1000 second=0 worst_ns=1002 begin_ns=151000000 end_ns=151000002 count=1\n"
	       "over thread=3 limit_ns=1000 second=0 worst_ns=1003 begin_ns=999000000 end_ns=999000003 count=1\n"
	       "over thread=3 limit_ns=1000 second=1 worst_ns=1004 begin_ns=1000000000 end_ns=1000000004 count=1\n");
}

static void a_stretch_of_which_more_are_late_is_told_again(void)
{
	struct over over = { .count = 0 };

	listen_from_now();
	late_by(&over, 7000, 30 * MS);
	over_tell(&over, 3, LIMIT);
	late_by(&over, 7010, MS); /* what is due behind the first one is no later */
	over_tell(&over, 3, LIMIT);
	late_by(&over, 7079, MS);
	over_tell(&over, 3, LIMIT);
	expect("over thread=3 limit_ns=1000 second=7 worst_ns=30001000 begin_ns=7000000000 end_ns=7030000000 count=1\n"
	       "over thread=3 limit_ns=1000 second=7 worst_ns=30001000 begin_ns=7000000000 end_ns=7030000000 count=2\n"
	       "over thread=3 limit_ns=1000 second=7 worst_ns=30001000 begin_ns=7000000000 end_ns=7080000000 count=3\n");
}

int main(void)
{
	few_values_teach_less();
	no_counter_is_ever_full();
	late_times_close_together_are_told_once();
	a_pause_or_a_new_second_tells_of_the_stretch_before();
	a_stretch_of_which_more_are_late_is_told_again();
	return EXIT_SUCCESS;
}
