/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "measure/workers.h"

#include "system/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SETTLE_NS = 50000000, /* between opening the gate and the first due time */
	RING_NS = 2000000000, /* scaled by four: what a ring must hold while the writer waits for a slow medium */
	RING_LEAST = 8192,    /* events from outside keep to no period, and loops catch up at once */
	RING_MOST = 65536,
};

static int64_t phase_ns(const struct config *config, int thread)
{
	if (config->phase_ns >= 0) /* a thread that began periods later would not be done with the others */
		return config->phase_ns % config->period_ns * thread % config->period_ns;
	return config->period_ns / config->threads * thread;
}

static uint32_t ring_capacity(const struct config *config)
{
	int64_t capacity = 4 * (int64_t)RING_NS / config->period_ns * config->fields;

	return (uint32_t)(capacity < RING_LEAST ? RING_LEAST : capacity > RING_MOST ? RING_MOST : capacity);
}

/* The deepest stage is the one that counts. */
static int judge_last_field(struct run *run, const struct worker *worker)
{
	const struct config *config = run->config;
	struct capture *last = run_captures(run, worker->number) + config->fields - 1;

	last->above = malloc(sizeof(*last->above));
	if (!last->above)
		return -ENOMEM;
	above_open(last->above, last->series, config->limits_ns, config->n_limits, worker->phase_ns);
	last->above->thread = worker->number;
	last->above->tell = config->progress_ns > 0;
	return 0;
}

static int prepare_worker(struct run *run, int number)
{
	const struct config *config = run->config;
	struct worker *worker = &run->workers[number];

	pthread_mutex_init(&worker->said_mutex, NULL);
	worker->number = number;
	worker->cpu = config->policy == POLICY_DEADLINE ?
			      -1 :
			      cpus_nth(&config->cpus, number % cpus_count(&config->cpus));
	worker->policy = config->policy;
	worker->timer_slack_ns = config->timer_slack_ns;
	worker->priority = config->priority;
	worker->probe = config->probe;
	worker->method = config->method;
	worker->options = config->probe_values;
	worker->fields = (uint32_t)config->fields;
	worker->period_ns = config_period_ns(config, number);
	worker->phase_ns = phase_ns(config, number);
	worker->warmup_ns = config->warmup_ns;
	worker->count = config_count(config, number);
	worker->cpus = &config->cpus;
	worker->duration_ns = config->duration_ns && !config->method->on_grid ? config->duration_ns : INT64_MAX;
	worker->break_ns = config->break_ns;
	worker->gate = &run->gate;
	for (int i = 0; i < config->fields; i++)
		capture_open(run_captures(run, number) + i, (uint16_t)(number * config->fields + i),
			     config->method->on_grid || config->method->external, config->keep_samples, worker->period_ns, worker->phase_ns);
	return judge_last_field(run, worker) ? -ENOMEM : ring_open(&worker->ring, ring_capacity(config));
}

static void say_failure(const struct worker *worker, char *why, size_t room)
{
	snprintf(why, room, "thread %d could not %s: %s", worker->number, worker->failed_at,
		 *worker->why ? worker->why : strerror(-worker->error));
}

int workers_start(struct run *run, char *why, size_t room)
{
	int started = 0, err = 0;

	for (; started < run->config->threads && !err; started += !err) {
		err = prepare_worker(run, started);
		if (!err)
			err = worker_start(&run->workers[started]);
	}
	gate_await(&run->gate, started);
	run->started = started;
	if (err) {
		snprintf(why, room, "thread %d could not be started: %s", started, strerror(-err));
		return err;
	}
	for (int i = 0; i < started && !err; i++) {
		err = run->workers[i].error;
		if (err)
			say_failure(&run->workers[i], why, room);
	}
	return err;
}

void workers_release(struct run *run)
{
	int64_t least_ns = clock_now_ns() + SETTLE_NS + run->config->warmup_ns, align_ns = run->config->align_ns;

	run->origin_ns = least_ns;
	if (align_ns >= 0) {
		align_ns %= NS_PER_SECOND;
		run->origin_ns = (least_ns - align_ns + NS_PER_SECOND - 1) / NS_PER_SECOND * NS_PER_SECOND + align_ns;
	}
	gate_open(&run->gate, run->origin_ns);
}

/* What the probe looked for has happened: the run has all that was asked for. */
static void note_limit(struct run *run, struct worker *worker)
{
	if (!worker->ended)
		return;
	worker->ended = false;
	run_note(run, worker->number, "limit", "%s", worker->why);
	run_ask_to_stop(run, END_AS_ASKED, worker->why);
}

void workers_check(struct run *run)
{
	char why[256];

	for (int i = 0; i < run->started; i++) {
		if (!word_load(&run->workers[i].done))
			continue;
		note_limit(run, &run->workers[i]);
		if (!run->workers[i].error)
			continue;
		say_failure(&run->workers[i], why, sizeof(why));
		run_ask_to_stop(run, END_ERROR, why);
	}
}

void workers_leave(const struct run *run)
{
	struct cpus others;

	if (cpus_get_affinity(0, &others))
		return;
	for (int i = 0; i < run->config->threads; i++)
		if (run->workers[i].cpu >= 0)
			cpus_remove(&others, run->workers[i].cpu);
	if (cpus_count(&others))
		cpus_set_affinity(0, &others);
}

int workers_done(const struct run *run)
{
	int done = 0;

	for (int i = 0; i < run->started; i++)
		done += word_load(&run->workers[i].done) != 0;
	return done;
}

void workers_stop(struct run *run)
{
	for (int i = 0; i < run->started; i++)
		worker_stop(&run->workers[i]);
}

void workers_dismiss(struct run *run)
{
	workers_stop(run);
	workers_release(run);
	for (int i = 0; i < run->started; i++)
		pthread_join(run->workers[i].thread, NULL);
}

static void note_stall(struct run *run, int thread, int64_t since_ns)
{
	run_note(run, thread, "stalled", "the thread did not run any more; since_ns=%lld", (long long)since_ns);
}

int workers_collect(struct run *run, char *why, size_t room)
{
	int err = 0;

	for (int i = 0; i < run->started; i++) {
		struct worker *worker = &run->workers[i];

		if (!word_load(&worker->done)) {
			note_stall(run, i, run_captures(run, i)->due_ns);
			continue;
		}
		pthread_join(worker->thread, NULL);
		note_limit(run, worker);
		if (worker_stalled(worker)) /* it ran, but nothing came for it */
			note_stall(run, i, worker->next_due_ns - run->origin_ns);
		if (worker->error && !err) {
			err = worker->error;
			say_failure(worker, why, room);
			run_ask_to_stop(run, END_ERROR, why);
		}
	}
	return err;
}

void workers_close(struct run *run)
{
	for (int i = 0; i < run->started; i++) {
		/* A thread that never came back still uses its ring. */
		if (!word_load(&run->workers[i].done))
			return;
		ring_close(&run->workers[i].ring);
		bytes_free(&run->workers[i].log.bytes);
		bytes_free(&run->workers[i].said);
		for (int field = 0; field < run->config->fields; field++)
			capture_close(run_captures(run, i) + field);
		for (int file = 0; file < run->workers[i].n_files; file++)
			free(run->workers[i].files[file].content);
	}
	free(run->workers);
	free(run->captures);
}
