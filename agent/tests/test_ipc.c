/* SPDX-License-Identifier: Apache-2.0 */
/* Every way in which the probe ipc wakes a thread: each post is answered, and a thread that waits for long can be stopped. */
#include "system/sys.h"

#include "system/clock.h"
#include "system/undo.h"
#include "measure/worker.h"

#include "check.h"

#include <string.h>

enum { COUNT = 40, CAPACITY = 256 };

#define PERIOD_NS 2000000LL
#define HOUR_NS (3600 * NS_PER_SECOND)

static struct worker worker;
static const struct cpus no_more; /* than those of this process */
static struct gate gate;
static int ends[2];

static void start(const struct method *method, const char *const *options, int64_t period_ns, uint64_t count)
{
	CHECK(pipe(ends) == 0);
	gate_init(&gate, ends[1]);
	memset(&worker, 0, sizeof(worker));
	worker = (struct worker){ .cpu = -1, .cpus = &no_more, .policy = POLICY_OTHER, .probe = probe_find("ipc"), .method = method, .options = options,
				  .fields = 1, .period_ns = period_ns, .count = count, .duration_ns = INT64_MAX, .gate = &gate };
	CHECK(ring_open(&worker.ring, CAPACITY) == 0);
	CHECK(worker_start(&worker) == 0);
	gate_await(&gate, 1);
	gate_open(&gate, clock_now_ns() + PERIOD_NS);
}

/* Until the thread has ended by itself. */
static void finish(void)
{
	char byte;

	CHECK(read(ends[0], &byte, 1) == 1 && pthread_join(worker.thread, NULL) == 0);
	CHECK(word_load(&worker.done) && worker.error == 0 && !worker.state && !word_load(&worker.helper));
}

static void clear(void)
{
	ring_close(&worker.ring);
	for (int i = 0; i < worker.n_files; i++)
		free(worker.files[i].content);
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

/* What stands behind a word of the account. */
static const char *told(const char *word)
{
	CHECK(worker.n_files == 1 && worker.files[0].length > 0);
	const char *at = strstr(worker.files[0].content, word);

	CHECK(at);
	return at + strlen(word);
}

static int64_t told_number(const char *word)
{
	return strtoll(told(word), NULL, 10);
}

/* Due times that are accounted for. Each value is positive, and those that passed before the answer are missed behind it. */
static int64_t counted(void)
{
	struct ring_entry entry;
	int64_t n = 0;

	while (ring_pop(&worker.ring, &entry)) {
		if (entry.kind == RING_SAMPLE) {
			n += 1 + entry.missed;
			CHECK(entry.value > 0 && (entry.missed == entry.value / PERIOD_NS || n == COUNT));
		}
		n += entry.kind == RING_LOST ? entry.value : 0;
	}
	return n + worker.ring.lost;
}

static void each_post_is_answered_once(const struct method *method, const char *sender)
{
	const char *const options[] = { sender };

	start(method, options, PERIOD_NS, COUNT);
	finish();
	CHECK(counted() == COUNT);
	CHECK(told_number("answered ") > 0);
	CHECK(told_number("posts ") - told_number("answered ") <= 1);
	CHECK(!strncmp(told("sender_policy "), "other\n", 6));
	clear();
}

static void a_long_wait_can_be_ended(const struct method *method)
{
	const char *const options[] = { NULL };

	start(method, options, HOUR_NS, COUNT);
	while (!word_load(&worker.helper))
		usleep(1000);
	while (!word_load(&worker.done)) {
		worker_stop(&worker);
		usleep(1000);
	}
	finish();
	clear();
}

static bool keeper_starts(void)
{
	struct undo undo;
	int err = undo_open(&undo);

	undo_close(&undo);
	return !err;
}

static void ignore(int number)
{
	(void)number;
}

int main(int argc, char **argv)
{
	const struct sigaction wake = { .sa_handler = ignore };
	const struct probe *probe = probe_find("ipc");

	if (argc > 1 && !strcmp(argv[1], UNDO_KEEPER))
		return undo_main();
	sys_init();
	clock_init();
	CHECK(sigaction(WORKER_STOP_SIGNAL, &wake, NULL) == 0);
	bool all = keeper_starts(); /* a program of another processor can't start itself */

	for (const struct method *const *method = probe->methods; *method; method++) {
		if (method_unsupported(*method) || (!all && (!strcmp((*method)->name, "mq") || !strcmp((*method)->name, "sysv"))))
			continue;
		each_post_is_answered_once(*method, NULL);
		each_post_is_answered_once(*method, "other");
		a_long_wait_can_be_ended(*method);
	}
	return EXIT_SUCCESS;
}
