/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "run.h"

#include "clock.h"
#include "facts.h"
#include "guard.h"
#include "signals.h"
#include "threads.h"
#include "writer.h"

#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>

enum {
	SETTLE_NS = 50000000,       /* between opening the gate and the first due time */
	GRACE_NS = 2000000000,      /* for threads to end by themselves after the last due time */
	RING_NS = 2000000000,       /* scaled by four: what a ring must hold while the writer waits for a slow medium */
	RING_LEAST = 8192, /* events from outside keep to no period, and loops catch up at once */
	RING_MOST = 65536,
};

/*
 * What a record needs. Checkpoint: of one thread, seen to be 500 to 1,000. Exceeded, above: an entry of such a chunk and its
 * share of the chunk. Fixed: facts and files at both ends, the reserve.
 */
static const double sample_bytes = 2.1, checkpoint_bytes = 1500, exceeded_bytes = 14, above_bytes = 6, fixed_bytes = 512 * 1024;

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

/* Whether the policy can be had at all, tried on the calling thread and taken back. */
static int try_policy(const struct config *config)
{
	if (config->policy == POLICY_OTHER)
		return 0;
	int err = config->policy == POLICY_DEADLINE ? policy_set_deadline(config->period_ns) :
						      sys_set_policy(0, (int)config->policy, config->priority);

	sys_set_policy(0, POLICY_OTHER, 0);
	return err;
}

static int check_privilege(struct config *config, char *why, size_t room)
{
	int err = try_policy(config);
	/* A deadline is promised on all CPUs, so the kernel asks for leave to use all of them. */
	const char *needs = config->policy == POLICY_DEADLINE ?
				    "root, leave to use every CPU, and CPU time that nobody has reserved" :
				    "root, CAP_SYS_NICE or an RTPRIO limit";
	char priority[32] = "";

	if (!err)
		return 0;
	if (config->allow_unprivileged) { /* the record says what was asked and what was had */
		config->policy = POLICY_OTHER;
		config->priority = 0;
		return 0;
	}
	if (config->priority)
		snprintf(priority, sizeof(priority), " at priority %d", config->priority);
	snprintf(why, room, "policy %s%s was refused (%s): it needs %s; --allow-unprivileged measures without it",
		 policy_name((int)config->policy), priority, strerror(-err), needs);
	return err;
}

static double least_of(double a, double b)
{
	return a < b ? a : b;
}

/* What is above the limits, should every activation be above each: lists end, the counts of each second go on. */
static double above_space(const struct config *config, double samples, double length_ns)
{
	double seconds = least_of(samples, length_ns / NS_PER_SECOND + 1);

	return exceeded_bytes * least_of(samples, (double)ABOVE_LIST_MOST * config->n_limits) +
	       above_bytes * seconds * config->n_limits;
}

/* What the record will need at most, against what the file system has. */
static int check_space(const struct run *run, char *why, size_t room)
{
	const struct config *config = run->config;
	char copy[4096];
	struct statvfs status;

	snprintf(copy, sizeof(copy), "%s", config->output);
	if (!strcmp(config->output, "-") || statvfs(dirname(copy), &status) < 0)
		return 0; /* opening it will tell */
	double length_ns = config_length_ns(config), samples = length_ns / (double)config->period_ns;
	double of_thread = (config->keep_samples ? sample_bytes * samples : 0) +
			   checkpoint_bytes * (1 + length_ns / (double)config->checkpoint_ns);
	double of_last = above_space(config, samples, length_ns); /* of a thread's fields */
	double needed = fixed_bytes + (of_thread * config->fields + of_last) * config->threads + trace_space(run);
	double there = (double)status.f_bavail * (double)status.f_frsize;

	if (needed <= there)
		return 0;
	snprintf(why, room,
		 "the record may grow to %.1f MB and there are %.1f MB free where '%s' shall be; measure for less time, "
		 "with a longer period, or with %s",
		 needed / 1e6, there / 1e6, config->output,
		 config->keep_samples ? "--record summary" :
		 config->n_limits     ? "fewer limits" :
					"fewer threads");
	return -ENOSPC;
}

/* A file that is there already is found before loads and threads are started. */
static int check_output(const struct config *config, char *why, size_t room)
{
	if (!strcmp(config->output, "-") || access(config->output, F_OK) < 0)
		return 0;
	snprintf(why, room, "'%s' is there already; a record is never written over", config->output);
	return -EEXIST;
}

/* A load that has ended by itself spoils the run. */
static void check_loads(struct run *run)
{
	for (int i = 0; i < run->config->n_loads; i++) {
		struct running_load *load = &run->config->loads[i];
		char why[256];

		if (!load_died(load, why, sizeof(why)))
			continue;
		run_note(run, WHOLE_RUN, "load_died", "%s", load->name);
		run_ask_to_stop(run, END_LOAD_DIED, why);
	}
}

static int64_t phase_ns(const struct config *config, int thread)
{
	if (config->phase_ns >= 0)
		return config->phase_ns * thread;
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

	worker->number = number;
	worker->cpu = config->policy == POLICY_DEADLINE ?
			      -1 :
			      cpus_nth(&config->cpus, number % cpus_count(&config->cpus));
	worker->policy = config->policy;
	worker->priority = config->priority;
	worker->probe = config->probe;
	worker->method = config->method;
	worker->options = config->probe_values;
	worker->fields = (uint32_t)config->fields;
	worker->period_ns = config->period_ns;
	worker->phase_ns = phase_ns(config, number);
	worker->warmup_ns = config->warmup_ns;
	worker->count = config_count(config);
	worker->cpus = &config->cpus;
	worker->duration_ns = config->duration_ns && !config->method->on_grid ? config->duration_ns : INT64_MAX;
	worker->gate = &run->gate;
	for (int i = 0; i < config->fields; i++)
		capture_open(run_captures(run, number) + i, (uint16_t)(number * config->fields + i),
			     config->method->on_grid || config->method->external, config->keep_samples, config->period_ns, worker->phase_ns);
	return judge_last_field(run, worker) ? -ENOMEM : ring_open(&worker->ring, ring_capacity(config));
}

static void say_failure(const struct worker *worker, char *why, size_t room)
{
	snprintf(why, room, "thread %d could not %s: %s", worker->number, worker->failed_at,
		 *worker->why ? worker->why : strerror(-worker->error));
}

/* Starts the threads and waits until each has its policy and its CPU, or has failed to get them. */
static int start_workers(struct run *run, char *why, size_t room)
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

static void open_gate(struct run *run)
{
	run->origin_ns = clock_now_ns() + SETTLE_NS + run->config->warmup_ns;
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

/* A thread that has failed spoils the run, so the others need not go on to its end. */
static void check_workers(struct run *run)
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

static bool all_done(const struct run *run)
{
	for (int i = 0; i < run->started; i++)
		if (!word_load(&run->workers[i].done))
			return false;
	return true;
}

static bool any_done(const struct run *run)
{
	for (int i = 0; i < run->started; i++)
		if (word_load(&run->workers[i].done))
			return true;
	return false;
}

static void stop_workers(struct run *run)
{
	for (int i = 0; i < run->started; i++)
		worker_stop(&run->workers[i]);
}

/* Ends threads that wait at the gate and shall not measure. */
static void dismiss_workers(struct run *run)
{
	stop_workers(run);
	open_gate(run);
	for (int i = 0; i < run->started; i++)
		pthread_join(run->workers[i].thread, NULL);
}

/* When every due time has passed; INT64_MAX where only the count of samples ends the run. */
static int64_t planned_end_ns(const struct run *run)
{
	const struct config *config = run->config;
	double length_ns = config_length_ns(config);
	bool keeps_period = config->method->on_grid || config->method->keeps_period;

	if (length_ns > 9e18 || (config->samples && !keeps_period))
		return INT64_MAX;
	return run->origin_ns + (int64_t)length_ns + 2 * config->period_ns;
}

static void take_signal(struct run *run, int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		check_loads(run);
	else
		run_ask_to_stop(run, END_INTERRUPTED,
				info.ssi_signo == SIGINT ? "SIGINT" : info.ssi_signo == SIGHUP ? "SIGHUP" : "SIGTERM");
}

static void take_input(struct run *run, struct pollfd *input)
{
	char ignored[256];
	ssize_t n = read(input->fd, ignored, sizeof(ignored));

	if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return;
	run_ask_to_stop(run, END_HOST_GONE, "standard input ended");
	input->fd = -1;
}

/*
 * The main thread's part of the run: signals, loads, the host, the time. A thread that does not come back after the
 * last due time is given twice the grace, once before and once after it is asked to stop.
 */
static void supervise(struct run *run, int signal_fd)
{
	struct pollfd fds[] = {
		{ .fd = run->wake_fds[0], .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = run->config->stop_on_eof ? STDIN_FILENO : -1, .events = POLLIN },
	};
	int64_t give_up_ns = INT64_MAX, deadline_ns = planned_end_ns(run);
	bool overdue = false;

	while (!all_done(run) && clock_now_ns() < give_up_ns) {
		char ignored[64];

		poll(fds, 3, run->stop_asked ? 50 : 1000);
		if (fds[0].revents && read(fds[0].fd, ignored, sizeof(ignored)) < 0)
			continue;
		if (fds[0].revents)
			check_workers(run);
		if (fds[1].revents)
			take_signal(run, signal_fd);
		if (fds[2].revents)
			take_input(run, &fds[2]);
		if (clock_now_ns() > deadline_ns && overdue)
			run_ask_to_stop(run, END_AS_ASKED, "some threads did not end by themselves");
		if (clock_now_ns() > deadline_ns && !overdue) {
			/* The grace counts from now, should the whole process have been stopped until now. */
			overdue = true;
			deadline_ns = clock_now_ns() + GRACE_NS;
		}
		if (run->stop_asked || any_done(run))
			trace_stop(run);
		if (run->stop_asked) {
			stop_workers(run);
			if (give_up_ns == INT64_MAX)
				give_up_ns = clock_now_ns() + GRACE_NS + run->config->period_ns;
		}
	}
	trace_stop(run);
}

static void note_stall(struct run *run, int thread, int64_t since_ns)
{
	run_note(run, thread, "stalled", "the thread did not run any more; since_ns=%lld", (long long)since_ns);
}

/* Joins the threads that have ended. What another did not answer is an event; the process ends without it. */
static int collect_workers(struct run *run, char *why, size_t room)
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

static void ignore(int signal)
{
	(void)signal;
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
		dismiss_workers(run);
		guard_stop(run);
		facts_close(run);
		return err;
	}
	open_gate(run);
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
	int failed = collect_workers(run, why, room);

	if (!err)
		writer_finish(run);
	check_loads(run);
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
		snprintf(why, room, "no space was left for the record; the run ended early, what was written is whole");
		return -ENOSPC;
	}
	if (err && err != -EPIPE)
		snprintf(why, room, "the record could not be written: %s", strerror(-err));
	return err == -EPIPE ? 0 : err;
}

static int open_and_measure(struct run *run, int signal_fd, char *why, size_t room)
{
	int err = start_workers(run, why, room);

	if (!err) {
		err = record_open(&run->record, run->config->output);
		if (err)
			snprintf(why, room, "'%s' can't be written: %s", run->config->output, strerror(-err));
	}
	if (err) {
		dismiss_workers(run);
		return err;
	}
	err = measure(run, signal_fd, why, room);
	bool empty = run->record.seekable && !run->record.end;
	int written = record_close(&run->record);

	if (err && empty)
		unlink(run->config->output); /* just made, and nothing was measured */
	return err ? err : report_record_error(run, written, why, room);
}

static void close_run(struct run *run)
{
	for (int i = 0; i < run->started; i++) {
		/* A thread that never came back still uses its ring. */
		if (!word_load(&run->workers[i].done))
			return;
		ring_close(&run->workers[i].ring);
		for (int field = 0; field < run->config->fields; field++)
			capture_close(run_captures(run, i) + field);
		for (int file = 0; file < run->workers[i].n_files; file++)
			free(run->workers[i].files[file].content);
	}
	free(run->workers);
	free(run->captures);
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
	struct sigaction wake = { .sa_handler = ignore };
	struct config *config = run->config;
	int signal_fd = signals_open(why, room);

	sigaction(WORKER_STOP_SIGNAL, &wake, NULL); /* without SA_RESTART: it ends a sleep */
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
	struct run run = { .config = config };
	int err = check_output(config, why, room);

	pthread_mutex_init(&run.mutex, NULL);
	if (!err)
		err = check_privilege(config, why, room);
	if (!err)
		err = trace_plan(&run, why, room);
	if (!err)
		err = check_space(&run, why, room);
	if (err)
		return err;
	err = allocate(&run);
	if (err)
		snprintf(why, room, "the run can't be prepared: %s", strerror(-err));
	else
		err = measure_under_load(&run, why, room);
	close_run(&run);
	return err;
}
