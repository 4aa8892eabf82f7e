/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "run/writer.h"

#include "measure/workers.h"
#include "system/clock.h"
#include "system/threads.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { NICE = -10, SLICE_SHARE = 32, SLICE_MOST_S = 600, RECORDED_NS = 50000000 };

/* An activation has one sample for each field, in their order; everything else is for all of them. */
static void drain_ring(struct writer *writer, int thread)
{
	struct run *run = writer->run;
	struct capture *captures = run_captures(run, thread);
	int fields = run->config->fields, field = 0;
	struct ring_entry entry;

	while (ring_pop(&run->workers[thread].ring, &entry)) {
		if (entry.kind == RING_SAMPLE) {
			if (field == fields - 1)
				recorder_see(writer->recorder, thread, &captures[field], entry.value);
			capture_add(&captures[field], &run->record, &entry);
			field = (field + 1) % fields;
			continue;
		}
		for (int i = 0; i < fields; i++)
			capture_add(&captures[i], &run->record, &entry);
	}
}

static void drain(struct writer *writer)
{
	for (int i = 0; i < writer->run->config->threads; i++)
		drain_ring(writer, i);
	recorder_claim(writer->recorder);
}

/* What a thread lost just before its end it could not announce any more. */
static void drain_last(struct writer *writer)
{
	struct run *run = writer->run;

	drain(writer);
	for (int i = 0; i < run->config->threads; i++) {
		if (!word_load(&run->workers[i].done))
			continue;
		ring_settle(&run->workers[i].ring);
		drain_ring(writer, i);
	}
}

static void write_events(struct run *run)
{
	struct event events[EVENTS_MOST];

	pthread_mutex_lock(&run->notices.mutex);
	int n = run->notices.n_events, dropped = run->notices.events_dropped;

	memcpy(events, run->notices.events, (size_t)n * sizeof(*events));
	run->notices.n_events = run->notices.events_dropped = 0;
	pthread_mutex_unlock(&run->notices.mutex);
	for (int i = 0; i < n; i++)
		record_event(&run->record, events[i].time_ns - run->origin_ns, events[i].thread, events[i].kind, events[i].text);
	if (dropped)
		record_event(&run->record, run_time_ns(run), WHOLE_RUN, "dropped", "too many events at once; some are not here");
}

static void print_progress(struct run *run)
{
	for (int i = 0; i < run->config->threads; i++) {
		/* The deepest stage, which is the one that counts. */
		struct capture *c = run_captures(run, i) + run->config->fields - 1;

		above_tell(c->above);
		fprintf(stderr,
			"progress time_ns=%lld thread=%d cpu=%d obtained=%llu missed=%llu lost=%llu last_ns=%lld min_ns=%lld "
			"mean_ns=%.0f max_ns=%lld due_ns=%lld first_due_ns=%lld recent=%llu recent_max_ns=%lld\n",
			(long long)run_time_ns(run), i, run->workers[i].cpu, (unsigned long long)c->obtained,
			(unsigned long long)c->missed, (unsigned long long)c->lost, (long long)c->last, (long long)c->min,
			c->obtained ? c->sum / (double)c->obtained : 0.0, (long long)c->max, (long long)c->due_ns,
			(long long)c->first_due_ns, (unsigned long long)c->recent, (long long)c->recent_max);
		c->recent = 0;
		c->recent_max = 0;
	}
}

/*
 * Slices grow with the run up to ten minutes, so that a short run is kept in detail and the histograms of a long one stay
 * small. Checkpoints are counted, not timed, so that a late one does not shift the slices behind it.
 */
static bool slice_ends(struct writer *writer)
{
	int64_t before = writer->slice_began, length = ++writer->checkpoints - before;

	if (SLICE_SHARE * length < before && length * writer->run->config->checkpoint_ns < SLICE_MOST_S * NS_PER_SECOND)
		return false;
	writer->slice_began = writer->checkpoints;
	return true;
}

static void checkpoint(struct writer *writer, bool last)
{
	struct run *run = writer->run;
	bool ends = slice_ends(writer) || last;

	for (int i = 0; i < run->config->threads * run->config->fields; i++)
		capture_flush(&run->captures[i], &run->record, ends);
	for (int i = 0; i < run->config->threads; i++)
		conditions_write(&run->workers[i].log, &run->workers[i].conditions, i, &run->record);
	record_flush(&run->record);
}

static void check_record(struct run *run)
{
	if (run->record.overrun)
		run_ask_to_stop(run, END_NO_SPACE, "the buffer is full of what the link has not brought to the host");
	else if (run->record.no_space)
		run_ask_to_stop(run, END_NO_SPACE,
				run->record.limited ? "the limit on the size of files leaves no room for the record" :
						      "no space is left for the record");
	else if (run->record.error == -EPIPE)
		run_ask_to_stop(run, END_HOST_GONE, "nobody reads the record any more");
	else if (run->record.error)
		run_ask_to_stop(run, END_ERROR, strerror(-run->record.error));
}

/*
 * Often enough that the rings are never more than an eighth full, but twice a second at the least and never in a hurry. Pages of the
 * flight recorder are there for half a second or so, and who needs them is to be found before that.
 */
static int64_t pause_ns(const struct run *run, bool recorded)
{
	int64_t eighth_ns = run->config->period_ns / run->config->fields * ((int64_t)run->workers[0].ring.mask + 1) / 8;

	int64_t most_ns = recorded ? RECORDED_NS : NS_PER_SECOND / 2;

	return eighth_ns > most_ns ? most_ns : eighth_ns < 20000000 ? 20000000 : eighth_ns;
}

/* True once every interval; late calls do not pile up. */
static bool is_time(int64_t *next_ns, int64_t interval_ns, int64_t now_ns)
{
	if (!interval_ns || now_ns < *next_ns)
		return false;
	*next_ns += interval_ns;
	if (*next_ns <= now_ns)
		*next_ns = now_ns + interval_ns;
	return true;
}

static void *writer_main(struct writer *writer)
{
	struct run *run = writer->run;
	const struct config *config = run->config;
	int64_t tick_ns = run->origin_ns, checkpoint_ns = run->origin_ns + config->checkpoint_ns;
	int64_t progress_ns = run->origin_ns + config->progress_ns;

	/* A power cut before the first checkpoint leaves what was asked, and where. */
	record_flush(&run->record);
	while (!word_load(&writer->stop)) {
		sys_sleep(CLOCK_MONOTONIC, 0, pause_ns(run, writer->recorder->open));
		int64_t now_ns = clock_now_ns();

		drain(writer);
		write_events(run);
		streaming_look(&writer->streaming, run);
		if (is_time(&tick_ns, NS_PER_SECOND, now_ns))
			facts_each_second(writer->facts);
		if (is_time(&progress_ns, config->progress_ns, now_ns) && !streaming_log_is_full(&writer->streaming))
			print_progress(run);
		if (is_time(&checkpoint_ns, config->checkpoint_ns, now_ns))
			checkpoint(writer, false);
		check_record(run);
	}
	drain_last(writer);
	facts_each_second(writer->facts);
	write_events(run);
	if (config->progress_ns) /* what came since the last, for those who decide by it */
		print_progress(run);
	checkpoint(writer, true);
	for (int i = 0; i < config->threads * config->fields; i++)
		capture_end(&run->captures[i], &run->record);
	streaming_end(&writer->streaming, run);
	return NULL;
}

static void *writer_enter(void *argument)
{
	struct writer *writer = argument;

	/* More than its share among loads; without the privilege it has the usual one, and a fact says so. */
	(void)setpriority(PRIO_PROCESS, (id_t)sys_gettid(), NICE);
	workers_leave(writer->run);
	facts_of_writer(writer->run);
	return writer_main(writer);
}

int writer_start(struct writer *writer, struct run *run, struct facts *facts, struct recorder *recorder)
{
	writer->run = run;
	writer->facts = facts;
	writer->recorder = recorder;
	streaming_begin(&writer->streaming, run);
	return thread_start(&writer->thread, writer_enter, writer);
}

void writer_finish(struct writer *writer)
{
	thread_end(writer->thread, &writer->stop);
}
