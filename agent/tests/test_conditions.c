/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread notes about itself, with orders that it obeys and orders that it does not, and the chunk that comes of it. */
#include "system/sys.h"

#include "system/clock.h"
#include "measure/conditions.h"
#include "measure/worker.h"

#include "decode.h"
#include "scratch.h"

#include <sched.h>

enum { MEAN = 50, DRAWS = 100000, PERIOD_NS = 1000000 };

static void distances_are_drawn_evenly_around_their_mean(void)
{
	uint32_t state = 1, seen[2 * MEAN] = { 0 };
	uint64_t sum = 0;

	for (int i = 0; i < DRAWS; i++) {
		uint32_t distance = conditions_distance(&state, MEAN);

		CHECK(distance >= 1 && distance < 2 * MEAN);
		seen[distance]++;
		sum += distance;
	}
	CHECK(sum > (uint64_t)DRAWS * MEAN * 99 / 100 && sum < (uint64_t)DRAWS * MEAN * 101 / 100);
	for (uint32_t i = 1; i < 2 * MEAN; i++) /* 1,010 each; six standard deviations are 190 */
		CHECK(seen[i] > 800 && seen[i] < 1200);
	CHECK(conditions_distance(&state, 1) == 1);
}

static struct conditions opened(int cpu, int policy, int priority, int64_t period_ns)
{
	struct conditions conditions = { .cpu = cpu, .policy = policy, .priority = priority };

	conditions_open(&conditions, true, period_ns, 7);
	return conditions;
}

static void checks_are_rarer_the_shorter_the_period(void)
{
	static const struct {
		int64_t period_ns;
		uint32_t mean;
	} expected[] = { { 50000, 64 }, { 1000000, 50 }, { 10000000, 5 }, { 50000000, 1 }, { 1000000000, 1 } };

	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		struct conditions conditions = opened(-1, POLICY_OTHER, 0, expected[i].period_ns);

		CHECK(conditions.mean == expected[i].mean);
		conditions_close(&conditions);
	}
}

static void a_thread_as_asked_notes_nothing_but_its_checks(void)
{
	struct conditions conditions = opened(-1, POLICY_OTHER, 0, PERIOD_NS);

	for (int i = 0; i < 1000; i++)
		conditions_note(&conditions);
	CHECK(conditions.now.checks >= 10 && conditions.now.checks <= 40);
	CHECK(conditions.now.noted == (conditions.every ? 1000 : conditions.now.checks));
	CHECK(!conditions.now.elsewhere && !conditions.now.other_policy && !conditions.now.other_priority && !conditions.n_deviations);
	CHECK(conditions.reads == (conditions.delay_fd < 0 ? 0 : conditions.now.checks));
	conditions_close(&conditions);
}

static void a_thread_that_only_collects_notes_nothing(void)
{
	struct conditions conditions = { .cpu = 0, .policy = POLICY_FIFO, .priority = 80 };
	struct conditions_log log = { .rows = 0 };

	conditions_open(&conditions, false, PERIOD_NS, 7);
	for (int i = 0; i < 1000; i++)
		conditions_note(&conditions);
	conditions_row(&log, &conditions, 5000000);
	CHECK(!conditions.now.noted && !conditions.now.checks && !log.rows);
	conditions_close(&conditions);
}

static void another_cpu_than_asked_is_noted_at_each_activation(void)
{
	struct conditions conditions = opened(CPUS_MOST - 1, POLICY_OTHER, 0, PERIOD_NS);
	struct cpus mine, here = { { 0 } };
	int cpu;

	CHECK(cpus_get_affinity(0, &mine) == 0);
	cpu = cpus_nth(&mine, 0);
	cpus_add(&here, cpu);
	CHECK(cpus_set_affinity(0, &here) == 0);
	for (int i = 0; i < 300; i++)
		conditions_note(&conditions);
	CHECK(cpus_set_affinity(0, &mine) == 0);
	CHECK(conditions.now.noted > 0 && conditions.now.elsewhere == conditions.now.noted);
	CHECK(conditions.n_deviations == 1 && conditions.deviations[0].kind == CONDITION_CPU);
	CHECK((int)conditions.deviations[0].seen == cpu && conditions.deviations[0].count == conditions.now.noted);
	conditions_close(&conditions);
}

static void get_row(struct reader *payload, uint64_t *row)
{
	for (int i = 0; i < 9; i++)
		row[i] = get_varint(payload);
}

static void expect_deviation(struct reader *payload, enum condition kind, uint32_t count, const char *text)
{
	char seen[64];

	CHECK(get_number(payload, 1) == (uint64_t)kind);
	uint64_t found = get_number(payload, 4);

	CHECK(found == count);
	get_string(payload, seen, sizeof(seen));
	CHECK(!strcmp(seen, text));
}

/* Each check finds another policy than the one asked for, and each look another affinity. */
static void what_differs_is_in_the_chunk(void)
{
	struct conditions conditions = opened(-1, POLICY_FIFO, 80, 50 * PERIOD_NS);
	struct conditions_log log = { .rows = 0 };
	struct record record;
	struct cpus first = { { 0 } }, other = { { 0 } };
	struct chunk chunk;
	uint64_t row[9] = { 0 };

	cpus_add(&first, 0);
	cpus_add(&other, 1);
	cpus_add(&other, 2);
	CHECK(record_open(&record, scratch_file()) == 0);
	conditions_look(&log, -1, &first); /* not bound: what it has first is what it should have */
	conditions_note(&conditions);
	conditions_row(&log, &conditions, 1000000000);
	conditions_note(&conditions);
	conditions_note(&conditions);
	conditions_look(&log, -1, &other);
	conditions_row(&log, &conditions, 2005999999);
	conditions_write(&log, &conditions, 3, &record);
	conditions_write(&log, &conditions, 3, &record); /* no rows: no chunk */
	conditions_note(&conditions);
	conditions_row(&log, &conditions, 3000000000);
	conditions_write(&log, &conditions, 3, &record);
	CHECK(record_close(&record) == 0);

	struct reader reader = read_whole(scratch_path);
	const uint8_t *whole = reader.at;

	CHECK(get_chunk(&reader, &chunk) && chunk.type == CHUNK_CONDITIONS);
	CHECK(get_number(&chunk.payload, 2) == 3);
	CHECK(get_number(&chunk.payload, 2) == 2);
	CHECK(get_number(&chunk.payload, 4) == 2);
	expect_deviation(&chunk.payload, CONDITION_POLICY, 3, "other");
	expect_deviation(&chunk.payload, CONDITION_AFFINITY, 1, "1-2");
	get_row(&chunk.payload, row);
	CHECK(row[0] == 1000 && row[1] == 1 && row[2] == 0 && row[3] == 1 && row[4] == 1 && row[5] == 0 && row[6] == 0);
	get_row(&chunk.payload, row);
	CHECK(row[0] == 1005 && row[1] == 2 && row[2] == 0 && row[3] == 2 && row[4] == 2 && row[5] == 0 && row[6] == 1);
	CHECK(chunk.payload.at == chunk.payload.end);
	CHECK(get_chunk(&reader, &chunk) && chunk.type == CHUNK_CONDITIONS);
	CHECK(get_number(&chunk.payload, 2) == 3);
	CHECK(get_number(&chunk.payload, 2) == 1);
	CHECK(get_number(&chunk.payload, 4) == 1);
	expect_deviation(&chunk.payload, CONDITION_POLICY, 1, "other");
	get_row(&chunk.payload, row);
	CHECK(row[0] == 3000 && row[1] == 1 && row[3] == 1 && row[4] == 1 && row[6] == 0);
	CHECK(!get_chunk(&reader, &chunk));
	free((void *)(uintptr_t)whole);
	bytes_free(&log.bytes);
	conditions_close(&conditions);
}

/* The thread goes on while the writer reads its words one after the other. */
static void a_part_is_never_more_than_the_whole(void)
{
	struct conditions conditions = { .mean = 1, .now = { .noted = 10, .elsewhere = 12, .checks = 3, .other_policy = 4 } };
	struct conditions_log log = { .rows = 0 };

	conditions_row(&log, &conditions, 0);
	CHECK(log.before.elsewhere == 10 && log.before.other_policy == 3);
	conditions.now.noted = conditions.now.elsewhere = 14;
	conditions.now.checks = 5;
	conditions_row(&log, &conditions, 0);
	CHECK(log.before.elsewhere == 14 && log.before.other_policy == 4);
	bytes_free(&log.bytes);
}

static void different_deviations_beyond_the_eighth_are_in_the_rows_only(void)
{
	struct conditions conditions = opened(-1, POLICY_DEADLINE, 0, 50 * PERIOD_NS);

	for (uint32_t i = 0; i < DEVIATIONS_MOST; i++)
		conditions.deviations[i] = (struct deviation){ CONDITION_CPU, i, 1 };
	conditions.n_deviations = DEVIATIONS_MOST;
	conditions_note(&conditions);
	CHECK(conditions.now.other_policy == 1 && conditions.n_deviations == DEVIATIONS_MOST);
	conditions_close(&conditions);
}

int main(void)
{
	sys_init();
	clock_init();
	distances_are_drawn_evenly_around_their_mean();
	checks_are_rarer_the_shorter_the_period();
	a_thread_as_asked_notes_nothing_but_its_checks();
	a_thread_that_only_collects_notes_nothing();
	another_cpu_than_asked_is_noted_at_each_activation();
	what_differs_is_in_the_chunk();
	a_part_is_never_more_than_the_whole();
	different_deviations_beyond_the_eighth_are_in_the_rows_only();
	return EXIT_SUCCESS;
}
