/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "run/run.h"

#include "collect/collect.h"
#include "facts/facts.h"
#include "loads/common/start.h"
#include "measure/guard.h"
#include "measure/shared.h"
#include "measure/workers.h"
#include "run/preflight.h"
#include "run/settings.h"
#include "run/supervise.h"
#include "run/writer.h"
#include "trace/trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the threads share, and what each part of the run has for itself. */
struct measurement {
	struct run run;
	struct guard guard;
	struct facts facts;
	struct writer writer;
	struct trace trace;
	struct settings settings;
	struct collection collection; /* what an audit judges: of the system as it is without this run */
	int dma_latency_fd;           /* or -errno */
};

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

/* Only the difference of what is counted says something. */
static void write_counts_again(struct measurement *all)
{
	collect_system(&all->collection, &collect_for_run, MOMENT_END, 0);
	collect_write(&all->collection, &all->run.record, run_time_ns(&all->run), MOMENT_END);
}

/* Between the open record and its end. */
static int measure(struct measurement *all, int signal_fd, char *why, size_t room)
{
	struct run *run = &all->run;

	facts_open(&all->facts, run); /* before memory is locked and the time runs: it needs some of both */

	int locked = run->config->lock_memory ? lock_memory() : 0;
	int err = guard_start(&all->guard, run);

	if (err) {
		snprintf(why, room, "the guard that protects the machine could not be started: %s", strerror(-err));
		workers_dismiss(run);
		guard_stop(&all->guard);
		facts_close(&all->facts);
		return err;
	}
	trace_prepare(&all->trace); /* tracefs may take longer than the warm-up, and is then in the way of who switches the trace on */
	workers_release(run);
	trace_start(&all->trace);

	const struct granted granted = {
		.guard_priority = all->guard.runs ? all->guard.priority : 0,
		.dma_latency_fd = all->dma_latency_fd,
		.trace_seed = all->trace.plan.seed,
		.trace_refused = all->trace.refused,
		.lock_error = locked,
	};

	facts_at_start(&all->facts, &granted);
	collect_write(&all->collection, &run->record, run_time_ns(run), MOMENT_START);
	settings_describe(&all->settings, run, MOMENT_START);
	trace_describe(&all->trace);
	err = writer_start(&all->writer, run, &all->facts, &all->trace.recorder);
	if (err) {
		snprintf(why, room, "the writer could not be started: %s", strerror(-err));
		run_ask_to_stop(run, END_ERROR, why);
	}
	supervise(run, &all->trace, signal_fd);
	guard_stop(&all->guard);
	int failed = workers_collect(run, why, room);

	if (!err)
		writer_finish(&all->writer);
	supervise_loads(run);
	if (!run->record.no_space) {
		facts_at_end(&all->facts);
		settings_describe(&all->settings, run, MOMENT_END);
		write_counts_again(all);
	}
	trace_keep(&all->trace);
	facts_finish(run);
	facts_close(&all->facts);
	return err ? err : failed;
}

static int report_record_error(struct run *run, int err, char *why, size_t room)
{
	if (run->record.no_space || run->record.was_full) {
		snprintf(why, room, "%s; the run ended early, what was written is whole",
			 run->record.overrun ? "the link brought too little to the host, and the buffer was full" :
			 run->record.limited ? "the limit on the size of files left no room for the record" :
					       "no space was left for the record");
		return -ENOSPC;
	}
	if (err && err != -EPIPE)
		snprintf(why, room, "the record could not be written: %s", strerror(-err));
	return err == -EPIPE ? 0 : err;
}

static int open_and_measure(struct measurement *all, int signal_fd, char *why, size_t room)
{
	struct run *run = &all->run;
	int err = workers_start(run, why, room);

	if (!err) {
		err = record_open(&run->record, run->config->output);
		if (err)
			snprintf(why, room, "'%s' can't be written: %s", run->config->output, strerror(-err));
		run->record.buffer = run->config->stream_bytes;
		run->record.reserve += (int64_t)run->config->threads * run->config->fields * CAPTURE_RESERVE;
	}
	if (err) {
		workers_dismiss(run);
		return err;
	}
	err = measure(all, signal_fd, why, room);
	bool empty = run->record.seekable && !run->record.end;
	int written = record_close(&run->record);

	if ((err || written) && empty)
		unlink(run->config->output); /* just made, and nothing is in it */
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
static int measure_under_load(struct measurement *all, char *why, size_t room)
{
	struct config *config = all->run.config;
	int signal_fd = signals_open(why, room);

	if (signal_fd < 0)
		return signal_fd;
	if (*config->refused)
		fprintf(stderr, "rtproof-agent: the threads run without real time: policy %s was refused (%s)\n",
			policy_name((int)config->asked_policy), config->refused);
	all->dma_latency_fd = config->dma_latency_us >= 0 ? hold_dma_latency(config->dma_latency_us) : -1;
	int err = trace_open(&all->trace, &all->run, why, room);

	if (!err && *all->trace.refused)
		fprintf(stderr, "rtproof-agent: no events of the kernel, so causes can only be guessed from what coincides: %s\n",
			all->trace.refused);
	if (!err)
		err = loads_start(config->loads, config->n_loads, why, room);
	if (!err)
		err = settings_join(config, why, room);
	if (!err)
		err = open_and_measure(all, signal_fd, why, room);
	loads_stop(config->loads, config->n_loads);
	trace_close(&all->trace);
	if (all->dma_latency_fd >= 0)
		close(all->dma_latency_fd);
	close(signal_fd);
	return err;
}

int run_measure(struct config *config, char *why, size_t room)
{
	struct measurement all = { .run = { .config = config, .notices = { .mutex = PTHREAD_MUTEX_INITIALIZER } } };
	int err = preflight(config, &all.trace.plan, why, room);

	if (!err)
		err = settings_apply(&all.settings, config, why, room);
	if (err)
		return err;
	collect_system(&all.collection, &collect_for_run, MOMENT_START, 0); /* before there is a load, a request for the CPUs or a real-time thread of ours */
	err = allocate(&all.run);
	if (err)
		snprintf(why, room, "the run can't be prepared: %s", strerror(-err));
	else
		err = measure_under_load(&all, why, room);
	workers_close(&all.run);
	settings_restore(&all.settings);
	collect_free(&all.collection);
	return err;
}
