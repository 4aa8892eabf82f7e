/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring thread with a probe that does not wait but tells what it is told, so that every course of events can be had. */
#include "system/sys.h"

#include "measure/worker.h"

#include "check.h"

#include <string.h>

enum { MOST = 32 };

#define PERIOD_NS 1000LL
#define ORIGIN_NS 1000000000000LL
#define PHASE_NS 300LL
#define FIRST_NS (ORIGIN_NS + PHASE_NS)

/* What the probe answers next. */
struct step {
	struct activation activation;
	int err;
	bool reads_ring; /* the writer comes by first */
	bool stops;      /* somebody asks the thread to end meanwhile */
};

static const struct step *steps;
static int taken, opened, closed;
static int harvest; /* steps that are there although the thread shall stop */
static int64_t opened_for_ns, break_ns;
static struct ring_entry entries[MOST];
static int n_entries;
static struct worker worker;

static void read_ring(void)
{
	while (n_entries < MOST && ring_pop(&worker.ring, &entries[n_entries]))
		n_entries++;
}

static int fake_open(struct worker *self, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	CHECK(self == &worker && method == worker.method && period_ns == PERIOD_NS);
	opened_for_ns = first_due_ns;
	opened++;
	return 0;
}

static int fake_take(struct worker *self, struct activation *activation)
{
	const struct step *step = &steps[taken++];

	CHECK(taken <= MOST && opened == 1);
	if (step->reads_ring)
		read_ring();
	if (step->stops)
		worker_stop(self);
	*activation = step->activation;
	return step->err;
}

static bool fake_pending(struct worker *self)
{
	CHECK(self == &worker);
	return taken < harvest;
}

static void fake_close(struct worker *self)
{
	CHECK(self == &worker);
	closed++;
}

static const struct probe probe = { .name = "fake", .open = fake_open, .take = fake_take,
				    .pending = fake_pending, .close = fake_close };
static const struct method on_grid = { .name = "on", .on_grid = true };
static const struct method off_grid = { .name = "off", .on_grid = false };
static const char *const stages[] = { "irq", "task", NULL };
static const struct method staged = { .name = "staged", .on_grid = true, .fields = stages };
static const struct method exact = { .name = "exact", .external = true, .exact = true };
static const struct method outside = { .name = "outside", .external = true, .fields = stages };

/* Runs the thread from its start to its end; entries are then all that it handed over. */
static void run(const struct method *method, const struct step *list, uint64_t count, int64_t duration_ns, uint32_t capacity)
{
	static struct gate gate;
	int ends[2];
	char byte;

	CHECK(pipe(ends) == 0);
	gate_init(&gate, ends[1]);
	memset(&worker, 0, sizeof(worker));
	worker = (struct worker){ .cpu = -1, .policy = POLICY_OTHER, .probe = &probe, .method = method, .period_ns = PERIOD_NS,
				  .fields = (uint32_t)method_fields(method), .phase_ns = PHASE_NS, .warmup_ns = 2 * PERIOD_NS + 1, .count = count,
				  .duration_ns = duration_ns, .break_ns = break_ns, .gate = &gate, .timer_slack_ns = 77000 };
	CHECK(ring_open(&worker.ring, capacity) == 0);
	steps = list;
	taken = opened = closed = n_entries = 0;
	CHECK(worker_start(&worker) == 0);
	gate_await(&gate, 1);
	gate_open(&gate, ORIGIN_NS);
	CHECK(read(ends[0], &byte, 1) == 1);
	CHECK(pthread_join(worker.thread, NULL) == 0);
	CHECK(word_load(&worker.done) && opened == 1 && closed == 1);
	read_ring();
	ring_settle(&worker.ring);
	read_ring();
	ring_close(&worker.ring);
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

/* The activation with due time k * PERIOD_NS after the first. */
#define STEP(k, late_ns, missed_ones) { .activation = { FIRST_NS + (k) * PERIOD_NS, { late_ns }, 0, missed_ones } }

static void expect(int i, uint32_t kind, int64_t value, uint32_t missed)
{
	CHECK(i < n_entries);
	CHECK(entries[i].kind == kind && entries[i].value == value && entries[i].missed == missed);
}

static void the_warm_up_is_thrown_away(void)
{
	const struct step list[] = { STEP(-2, 10, 0), STEP(-1, 20, 0), STEP(0, 30, 0), STEP(1, 40, 0) };

	run(&on_grid, list, 2, INT64_MAX, 16);
	CHECK(worker.error == 0 && worker.warmup_activations == 2 && opened_for_ns == FIRST_NS - 2 * PERIOD_NS);
	CHECK(worker.start.timer_slack_ns == 77000);
	CHECK(taken == 4 && n_entries == 2);
	expect(0, RING_SAMPLE, 30, 0);
	expect(1, RING_SAMPLE, 40, 0);
}

static void the_first_latency_above_the_break_is_the_last(void)
{
	const struct step list[] = { STEP(-2, 900, 0), STEP(-1, 10, 0), STEP(0, 60, 0), STEP(1, 61, 0), STEP(2, 10, 0) };

	break_ns = 60;
	run(&on_grid, list, 9, INT64_MAX, 16);
	break_ns = 0;
	CHECK(worker.error == 0 && worker.ended && worker.left_ns == 0 && taken == 4 && n_entries == 2);
	CHECK(!strcmp(worker.why, "a latency of 61 ns is above --break"));
}

/* The answer to the last due time of the warm-up is also that to the first measured ones, which passed meanwhile. */
static void a_late_warm_up_hides_nothing(void)
{
	const struct step list[] = { STEP(-2, 10, 0), STEP(-1, 3 * PERIOD_NS + 50, 3), STEP(3, 60, 0) };

	run(&on_grid, list, 4, INT64_MAX, 16);
	CHECK(taken == 3 && worker.warmup_activations == 2 && n_entries == 2);
	expect(0, RING_SAMPLE, 2 * PERIOD_NS + 50, 2);
	expect(1, RING_SAMPLE, 60, 0);
}

static void a_warm_up_that_is_later_than_all_due_times_is_the_only_sample(void)
{
	const struct step list[] = { STEP(-2, 90 * PERIOD_NS, 90) };

	run(&on_grid, list, 5, INT64_MAX, 16);
	CHECK(taken == 1 && n_entries == 1);
	expect(0, RING_SAMPLE, 88 * PERIOD_NS, 4);
}

static void due_times_behind_the_last_are_not_missed(void)
{
	const struct step list[] = { STEP(-2, 0, 0), STEP(-1, 0, 0), STEP(0, 70, 0), STEP(1, 9 * PERIOD_NS, 9) };

	run(&on_grid, list, 5, INT64_MAX, 16);
	CHECK(taken == 4 && n_entries == 2);
	expect(1, RING_SAMPLE, 9 * PERIOD_NS, 3);
}

static void off_the_grid_the_first_due_time_is_told(void)
{
	const int64_t due_ns = FIRST_NS + 77;
	const struct step list[] = {
		STEP(-2, 900, 0),
		{ .activation = { FIRST_NS - 100, { 50 }, 0, 0 } },
		{ .activation = { due_ns, { 80 }, 0, 0 } },
		{ .activation = { due_ns + 80 + PERIOD_NS, { 90 }, 0, 0 } },
	};

	run(&off_grid, list, UINT64_MAX, PHASE_NS + 77 + 80 + PERIOD_NS + 90 + PERIOD_NS, 16);
	CHECK(worker.error == 0 && taken == 4 && n_entries == 3);
	expect(0, RING_DUE, PHASE_NS + 77, 0);
	expect(1, RING_SAMPLE, 80, 0);
	expect(2, RING_SAMPLE, 90, 0);
}

/* A ring of two: the due time and one sample fit, what comes then is lost until the writer has been there. */
static void off_the_grid_a_due_time_follows_each_hole(void)
{
	const struct step list[] = {
		STEP(-2, 0, 0), STEP(-1, 0, 0), STEP(0, 10, 0), STEP(1, 20, 3), STEP(5, 30, 0),
		{ .activation = { FIRST_NS + 7777, { 40 }, 0, 0 }, .reads_ring = true },
		{ .activation = { FIRST_NS + 8888, { 50 }, 0, 0 }, .reads_ring = true },
		{ .activation = { FIRST_NS + 9999, { 60 }, 0, 0 } },
	};

	run(&off_grid, list, 9, INT64_MAX, 2);
	CHECK(worker.error == 0 && taken == 8 && n_entries == 7);
	expect(0, RING_DUE, PHASE_NS, 0);
	expect(1, RING_SAMPLE, 10, 0);
	expect(2, RING_LOST, 5, 0);
	expect(3, RING_DUE, PHASE_NS + 7777, 0); /* and no room for its sample */
	expect(4, RING_LOST, 1, 0);
	expect(5, RING_DUE, PHASE_NS + 8888, 0);
	expect(6, RING_LOST, 2, 0);
}

#define STAGED(k, irq_ns, task_ns, lost_ones, missed_ones) \
	{ .activation = { FIRST_NS + (k) * PERIOD_NS, { irq_ns, task_ns }, lost_ones, missed_ones } }

/* A ring of four: the second activation fits, the third does not, not even in part. */
static void the_fields_of_an_activation_stay_together(void)
{
	const struct step list[] = {
		STAGED(-2, 0, 0, 0, 0), STAGED(-1, 0, 0, 0, 0), STAGED(0, 1, 10, 0, 2), STAGED(3, 2, 20, 0, 0),
		STAGED(4, 3, 30, 0, 0),
	};

	run(&staged, list, 5, INT64_MAX, 4);
	CHECK(worker.error == 0 && taken == 5 && n_entries == 5);
	expect(0, RING_SAMPLE, 1, 2);
	expect(1, RING_SAMPLE, 10, 2);
	expect(2, RING_SAMPLE, 2, 0);
	expect(3, RING_SAMPLE, 20, 0);
	expect(4, RING_LOST, 1, 0);
}

static void a_late_warm_up_counts_for_each_field(void)
{
	const struct step list[] = { STAGED(-2, 0, 0, 0, 0), STAGED(-1, PERIOD_NS, 2 * PERIOD_NS + 5, 0, 2), STAGED(2, 1, 2, 0, 0) };

	run(&staged, list, 3, INT64_MAX, 16);
	CHECK(taken == 3 && n_entries == 4);
	expect(0, RING_SAMPLE, 0, 1);
	expect(1, RING_SAMPLE, PERIOD_NS + 5, 1);
}

/* Of the four that the probe's source lost, two belong to the warm-up. */
static void what_the_source_lost_is_told(void)
{
	const struct step list[] = { STAGED(-2, 0, 0, 0, 0), STAGED(2, 1, 10, 4, 0), STAGED(3, 2, 20, 0, 0), STAGED(9, 3, 30, 5, 0) };

	run(&staged, list, 8, INT64_MAX, 16);
	CHECK(worker.error == 0 && taken == 4);
	expect(0, RING_LOST, 2, 0);
	expect(1, RING_SAMPLE, 1, 0);
	expect(2, RING_SAMPLE, 10, 0);
	expect(4, RING_SAMPLE, 20, 0);
	expect(5, RING_LOST, 4, 0);
	CHECK(n_entries == 6);
}

/* Only a due time that is off by more than a sixteenth of the period is told; those before the origin are nobody's. */
static void events_from_outside_say_when_they_were_due(void)
{
	const int64_t drift = PERIOD_NS / 16;
	const struct step list[] = {
		STAGED(-1, 0, 0, 0, 0),
		{ .activation = { ORIGIN_NS - 1, { 1, 1 }, 0, 0 } },
		{ .activation = { ORIGIN_NS + 50, { 1, 2 }, 0, 0 } },
		{ .activation = { ORIGIN_NS + 50 + PERIOD_NS + drift, { 3, 4 }, 0, 0 } },
		{ .activation = { ORIGIN_NS + 50 + 2 * PERIOD_NS + 5 * drift, { 5, 6 }, 0, 0 } },
	};

	run(&outside, list, 3, INT64_MAX, 16);
	CHECK(worker.error == 0 && taken == 5 && n_entries == 8);
	expect(0, RING_DUE, 50, 0);
	expect(1, RING_SAMPLE, 1, 0);
	expect(3, RING_SAMPLE, 3, 0);
	expect(5, RING_DUE, 50 + 2 * PERIOD_NS + 5 * drift, 0);
	expect(7, RING_SAMPLE, 6, 0);
}

/* Values have no part in it, and what was missed between is a period each. */
static void exact_due_times_are_told_whenever_they_leave_the_period(void)
{
	const struct step list[] = {
		STEP(-1, 0, 0), STEP(0, 7 * PERIOD_NS, 0), STEP(1, 6 * PERIOD_NS, 2), STEP(4, 5, 0),
		{ .activation = { FIRST_NS + 5 * PERIOD_NS + 1, { 6 }, 0, 0 } },
		{ .activation = { FIRST_NS + 6 * PERIOD_NS + 1, { 7 }, 0, 0 } },
	};

	run(&exact, list, 7, INT64_MAX, 16);
	CHECK(worker.error == 0 && taken == 6 && n_entries == 7);
	expect(0, RING_DUE, PHASE_NS, 0);
	expect(2, RING_SAMPLE, 6 * PERIOD_NS, 2);
	expect(3, RING_SAMPLE, 5, 0);
	expect(4, RING_DUE, PHASE_NS + 5 * PERIOD_NS + 1, 0);
	expect(6, RING_SAMPLE, 7, 0);
}

/* Nothing came in the warm-up: the first one is measured. */
static void what_comes_from_outside_after_the_warm_up_counts(void)
{
	const struct step list[] = {
		{ .activation = { FIRST_NS + 70, { 1, 2 }, 0, 0 } },
		{ .activation = { FIRST_NS + 70 + PERIOD_NS, { 3, 4 }, 0, 0 } },
	};

	run(&outside, list, 2, INT64_MAX, 16);
	CHECK(worker.error == 0 && taken == 2 && worker.warmup_activations == 0 && n_entries == 5);
	expect(0, RING_DUE, PHASE_NS + 70, 0);
	expect(1, RING_SAMPLE, 1, 0);
	expect(3, RING_SAMPLE, 3, 0);
}

static void interrupted_waits_go_on(void)
{
	const struct step list[] = {
		STEP(-2, 0, 0), { .err = -EINTR }, STEP(-1, 0, 0), { .err = -EINTR }, STEP(0, 5, 0),
	};

	run(&on_grid, list, 1, INT64_MAX, 16);
	CHECK(worker.error == 0 && taken == 5 && n_entries == 1);
	expect(0, RING_SAMPLE, 5, 0);
}

static void a_thread_that_is_asked_to_stop_does(void)
{
	const struct step list[] = {
		STEP(-2, 0, 0), STEP(-1, 0, 0), STEP(0, 5, 0), { .err = -EINTR, .stops = true },
	};

	run(&on_grid, list, 1000, INT64_MAX, 16);
	CHECK(worker.error == 0 && taken == 4 && n_entries == 1);
	CHECK(worker.left_ns > 0 && worker.next_due_ns == FIRST_NS + PERIOD_NS);
}

/* It served due times long past, but it ran. */
static void a_loop_that_is_behind_has_not_stalled(void)
{
	const struct step list[] = { STEP(-2, 0, 0), STEP(-1, 0, 0), STEP(0, 9 * PERIOD_NS, 0), { .err = -EINTR, .stops = true } };

	run(&on_grid, list, 1000, INT64_MAX, 16);
	CHECK(worker.error == 0 && worker.next_due_ns == FIRST_NS + 9 * PERIOD_NS);
}

/* The thread was kept from running; what it should have collected is there all the same, also that of the warm-up. */
static void what_is_pending_is_brought_in(void)
{
	const struct step list[] = { { .err = -EINTR, .stops = true }, STEP(-2, 0, 0), STEP(-1, 0, 0), STEP(0, 5, 0), STEP(1, 6, 0) };

	harvest = 5;
	run(&on_grid, list, 1000, INT64_MAX, 16);
	harvest = 0;
	CHECK(worker.error == 0 && taken == 5 && n_entries == 2);
	expect(0, RING_SAMPLE, 5, 0);
	expect(1, RING_SAMPLE, 6, 0);
	CHECK(worker.next_due_ns == FIRST_NS + 2 * PERIOD_NS);
}

static void silence_for_long_is_a_stall(void)
{
	struct worker silent = { .period_ns = NS_PER_SECOND, .next_due_ns = 77, .left_ns = 77 + 10 * NS_PER_SECOND };

	CHECK(worker_stalled(&silent));
	silent.left_ns--;
	CHECK(!worker_stalled(&silent));
	silent.period_ns = 1000;
	CHECK(worker_stalled(&silent));
	silent.left_ns = 76 + NS_PER_SECOND;
	CHECK(!worker_stalled(&silent));
	silent = (struct worker){ .period_ns = 1000, .next_due_ns = -10 * NS_PER_SECOND }; /* it ended by itself */
	CHECK(!worker_stalled(&silent));
}

static void a_probe_that_fails_ends_the_thread(void)
{
	const struct step list[] = { STEP(-2, 0, 0), STEP(-1, 0, 0), STEP(0, 5, 0), { .err = -EBADF } };

	run(&on_grid, list, 1000, INT64_MAX, 16);
	CHECK(worker.error == -EBADF && !strcmp(worker.failed_at, "measure") && n_entries == 1);
}

static void ignore(int signal)
{
	(void)signal;
}

int main(void)
{
	const struct sigaction wake = { .sa_handler = ignore };

	sys_init();
	CHECK(sigaction(WORKER_STOP_SIGNAL, &wake, NULL) == 0);
	the_warm_up_is_thrown_away();
	the_first_latency_above_the_break_is_the_last();
	a_late_warm_up_hides_nothing();
	a_warm_up_that_is_later_than_all_due_times_is_the_only_sample();
	due_times_behind_the_last_are_not_missed();
	off_the_grid_the_first_due_time_is_told();
	off_the_grid_a_due_time_follows_each_hole();
	the_fields_of_an_activation_stay_together();
	a_late_warm_up_counts_for_each_field();
	what_the_source_lost_is_told();
	events_from_outside_say_when_they_were_due();
	exact_due_times_are_told_whenever_they_leave_the_period();
	what_comes_from_outside_after_the_warm_up_counts();
	interrupted_waits_go_on();
	a_thread_that_is_asked_to_stop_does();
	a_loop_that_is_behind_has_not_stalled();
	what_is_pending_is_brought_in();
	silence_for_long_is_a_stall();
	a_probe_that_fails_ends_the_thread();
	return EXIT_SUCCESS;
}
