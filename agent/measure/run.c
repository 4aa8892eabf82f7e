/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "measure/run.h"

#include "facts/facts.h"
#include "measure/guard.h"
#include "measure/preflight.h"
#include "measure/supervise.h"
#include "measure/workers.h"
#include "measure/writer.h"
#include "system/clock.h"
#include "system/threads.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t run_time_ns(const struct run *run)
{
	return clock_now_ns() - run->origin_ns;
}

struct capture *run_captures(const struct run *run, int thread)
{
	return run->captures + (ptrdiff_t)thread * run->config->fields;
}

static void wake_main(struct run *run)
{
	while (write(run->wake_fds[1], "", 1) < 0 && errno == EINTR)
		;
}

void run_ask_to_stop(struct run *run, enum end_reason reason, const char *text)
{
	/* The other reasons have events of their own, which say more. */
	static const char *const kinds[] = {
		[END_INTERRUPTED] = "interrupted", [END_NO_SPACE] = "no_space", [END_HOST_GONE] = "host_gone", [END_ERROR] = NULL,
	};

	pthread_mutex_lock(&run->mutex);
	bool first = !run->stop_asked;

	if (first) {
		run->stop_asked = true;
		run->reason = reason;
		snprintf(run->reason_text, sizeof(run->reason_text), "%s", text);
	}
	pthread_mutex_unlock(&run->mutex);
	if (!first)
		return;
	if (kinds[reason])
		run_note(run, WHOLE_RUN, kinds[reason], "%s", text);
	wake_main(run);
}

void run_note(struct run *run, int thread, const char *kind, const char *format, ...)
{
	va_list arguments;

	pthread_mutex_lock(&run->mutex);
	if (run->n_events == EVENTS_MOST) {
		run->events_dropped++;
	} else {
		struct event *event = &run->events[run->n_events++];

		event->time_ns = clock_now_ns();
		event->thread = thread;
		snprintf(event->kind, sizeof(event->kind), "%s", kind);
		va_start(arguments, format);
		vsnprintf(event->text, sizeof(event->text), format, arguments);
		va_end(arguments);
	}
	pthread_mutex_unlock(&run->mutex);
}

/* Held open for the length of the run; the kernel takes the request back when it is closed, however that comes. */
static int hold_dma_latency(int64_t latency_us)
{
	int32_t value = (int32_t)latency_us;
	int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (write(fd, &value, sizeof(value)) != sizeof(value)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* Between the open record and its end. */
static int measure(struct run *run, int signal_fd, char *why, size_t room)
{
	facts_open(run); /* before memory is locked and the time runs: it needs some of both */

	int locked = run->config->lock_memory ? lock_memory() : 0;
	int err = guard_start(run);

	if (err) {
		snprintf(why, room, "the guard that protects the machine could not be started: %s", strerror(-err));
		workers_dismiss(run);
		guard_stop(run);
		facts_close(run);
		return err;
	}
	workers_release(run);
	trace_start(run);
	facts_at_start(run);
	fact_of_memory(run, locked);
	err = writer_start(run);
	if (err) {
		snprintf(why, room, "the writer could not be started: %s", strerror(-err));
		run_ask_to_stop(run, END_ERROR, why);
	}
	supervise(run, signal_fd);
	guard_stop(run);
	int failed = workers_collect(run, why, room);

	if (!err)
		writer_finish(run);
	supervise_loads(run);
	if (!run->record.no_space)
		facts_at_end(run);
	trace_keep(run);
	facts_finish(run);
	facts_close(run);
	return err ? err : failed;
}

static int report_record_error(struct run *run, int err, char *why, size_t room)
{
	if (run->record.no_space) {
		snprintf(why, room, "%s; the run ended early, what was written is whole",
			 run->record.limited ? "the limit on the size of files left no room for the record" :
					       "no space was left for the record");
		return -ENOSPC;
	}
	if (err && err != -EPIPE)
		snprintf(why, room, "the record could not be written: %s", strerror(-err));
	return err == -EPIPE ? 0 : err;
}

static int open_and_measure(struct run *run, int signal_fd, char *why, size_t room)
{
	int err = workers_start(run, why, room);

	if (!err) {
		err = record_open(&run->record, run->config->output);
		if (err)
			snprintf(why, room, "'%s' can't be written: %s", run->config->output, strerror(-err));
		run->record.reserve += (int64_t)run->config->threads * run->config->fields * CAPTURE_RESERVE;
	}
	if (err) {
		workers_dismiss(run);
		return err;
	}
	err = measure(run, signal_fd, why, room);
	bool empty = run->record.seekable && !run->record.end;
	int written = record_close(&run->record);

	if (err && empty)
		unlink(run->config->output); /* just made, and nothing was measured */
	return err ? err : report_record_error(run, written, why, room);
}

static int allocate(struct run *run)
{
	run->workers = calloc((size_t)run->config->threads, sizeof(*run->workers));
	run->captures = calloc((size_t)run->config->threads * (size_t)run->config->fields, sizeof(*run->captures));
	if (!run->workers || !run->captures)
		return -ENOMEM;
	if (pipe2(run->wake_fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	gate_init(&run->gate, run->wake_fds[1]);
	return 0;
}

/* With loads and the request for short idle states, which both end with the run. */
static int measure_under_load(struct run *run, char *why, size_t room)
{
	struct config *config = run->config;
	int signal_fd = signals_open(why, room);

	if (signal_fd < 0)
		return signal_fd;
	run->dma_latency_fd = config->dma_latency_us >= 0 ? hold_dma_latency(config->dma_latency_us) : -1;
	int err = trace_open(run, why, room);

	if (!err)
		err = loads_start(config->loads, config->n_loads, why, room);
	if (!err)
		err = open_and_measure(run, signal_fd, why, room);
	loads_stop(config->loads, config->n_loads);
	trace_close(run);
	if (run->dma_latency_fd >= 0)
		close(run->dma_latency_fd);
	close(signal_fd);
	return err;
}

int run_measure(struct config *config, char *why, size_t room)
{
	struct run run = { .config = config, .mutex = PTHREAD_MUTEX_INITIALIZER };
	int err = preflight(&run, why, room);

	if (err)
		return err;
	err = allocate(&run);
	if (err)
		snprintf(why, room, "the run can't be prepared: %s", strerror(-err));
	else
		err = measure_under_load(&run, why, room);
	workers_close(&run);
	return err;
}
