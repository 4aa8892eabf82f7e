/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "trace.h"

#include "clock.h"
#include "folder.h"
#include "run.h"
#include "text.h"
#include "threads.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KIB = 1024,
	BUFFER_MOST_KIB = 1024,       /* of a CPU, where the user says nothing */
	BUFFERS_MOST_KIB = 64 * 1024, /* of all together, " */
	BUFFER_LEAST_KIB = 16,
	BUFFER_LIMIT_KIB = 16 * 1024 * 1024,
	NAMES_ROOM = 512 * 1024,
};

/* What article 3 recorded, and the switches between threads. A star stands for any ending; 32-bit systems have others. */
static const char presets[] = "sched_wakeup+sched_wakeup_new+sched_waking+sched_switch+sys_enter_clock_nanosleep*+"
			      "sys_exit_clock_nanosleep*+sys_enter_nanosleep*+sys_exit_nanosleep*+spi_*+irq_handler_*";

static int refuse(char *why, size_t room, int err, const char *format, ...) __attribute__((format(printf, 4, 5)));

static int refuse(char *why, size_t room, int err, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, room, format, arguments);
	va_end(arguments);
	return err;
}

static int parse_option(struct trace *trace, const char *option, char *why, size_t room)
{
	if (!strncmp(option, "events=", 7) && option[7] && strlen(option) < sizeof(trace->patterns)) {
		snprintf(trace->patterns, sizeof(trace->patterns), "%s", option + 7);
		trace->given = true;
		return 0;
	}
	if (!strncmp(option, "buffer_kib=", 11) && !text_number(option + 11, 4, BUFFER_LIMIT_KIB, &trace->buffer_kib))
		return 0;
	if (!strncmp(option, "seed=", 5) && !text_number(option + 5, 0, UINT32_MAX, &trace->seed))
		return 0;
	return refuse(why, room, -EINVAL,
		      "--trace takes on, or events=NAME+NAME.., buffer_kib=N (4 to %d) and seed=N with commas between; not '%s'",
		      BUFFER_LIMIT_KIB, option);
}

static int parse(struct trace *trace, const char *text, char *why, size_t room)
{
	char copy[1024], *rest = NULL;
	int err = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *one = strtok_r(copy, ",", &rest); one && !err; one = strtok_r(NULL, ",", &rest))
		if (strcmp(text, "on"))
			err = parse_option(trace, one, why, room);
	return err;
}

/* The kernel's own size where that is given; else no more than a sixteenth of the memory there is. */
static int choose_buffer(struct trace *trace, char *why, size_t room)
{
	int64_t there_kib = memory_room() / KIB / trace->cpus, most_kib = BUFFERS_MOST_KIB / trace->cpus;

	if (trace->buffer_kib > there_kib / 2)
		return refuse(why, room, -ENOMEM, "a trace buffer of %lld KiB for each of %d CPUs is more than half of the memory there is",
			      (long long)trace->buffer_kib, trace->cpus);
	if (trace->buffer_kib)
		return 0;
	trace->buffer_kib = most_kib < BUFFER_MOST_KIB ? most_kib : BUFFER_MOST_KIB;
	if (trace->buffer_kib > there_kib / 16)
		trace->buffer_kib = there_kib / 16;
	if (trace->buffer_kib < BUFFER_LEAST_KIB)
		trace->buffer_kib = BUFFER_LEAST_KIB;
	return 0;
}

int trace_plan(struct run *run, char *why, size_t room)
{
	struct trace *trace = &run->trace;

	if (!run->config->trace)
		return 0;
	snprintf(trace->patterns, sizeof(trace->patterns), "%s", presets);
	trace->cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	int err = parse(trace, run->config->trace, why, room);

	return err ? err : choose_buffer(trace, why, room);
}

double trace_space(const struct run *run)
{
	return (double)run->trace.buffer_kib * KIB * run->trace.cpus * (1 + TRACE_TEXT_FACTOR);
}

static void path_of(const struct trace *trace, const char *file, char path[TRACEFS_PATH + 128])
{
	snprintf(path, TRACEFS_PATH + 128, "%s/%s", trace->place, file);
}

/* Without putting it back: in an instance, which goes as a whole, and of what has been changed before. */
static int put(struct trace *trace, const char *file, const char *value)
{
	char path[TRACEFS_PATH + 128];

	path_of(trace, file, path);
	return text_write_file(path, value);
}

/* before: NULL if the file tells. */
static int replace(struct trace *trace, const char *file, const char *value, const char *before)
{
	char path[TRACEFS_PATH + 128];

	if (trace->own)
		return put(trace, file, value);
	path_of(trace, file, path);
	return before ? undo_replace(&trace->undo, path, value, before) : undo_write(&trace->undo, path, value);
}

static int set(struct trace *trace, const char *file, const char *value)
{
	return replace(trace, file, value, NULL);
}

/* Everything at the top is there but once, so nobody else may use it. */
static int take_the_top(struct trace *trace)
{
	char text[TRACEFS_TEXT];

	if (tracefs_read(trace->root, "current_tracer", text) || !has_word(text, "nop") ||
	    tracefs_read(trace->root, "set_event", text) || *text)
		return -EBUSY;
	snprintf(trace->place, sizeof(trace->place), "%s", trace->root);
	return replace(trace, "trace", "", "");
}

/* Instances came with Linux 3.10. */
static int take_a_place(struct trace *trace)
{
	snprintf(trace->place, sizeof(trace->place), "%s/instances/" TRACEFS_OURS "%d-trace", trace->root, getpid());
	int err = undo_mkdir(&trace->undo, trace->place);

	trace->own = !err;
	return err == -ENOENT || err == -EROFS ? take_the_top(trace) : err;
}

static int set_buffer(struct trace *trace)
{
	char size[24], before[TRACEFS_TEXT];
	int err = tracefs_read(trace->place, "buffer_size_kb", before);

	before[strspn(before, "0123456789")] = '\0'; /* more may follow, such as what it will be */
	snprintf(size, sizeof(size), "%lld", (long long)trace->buffer_kib);
	return err ? err : replace(trace, "buffer_size_kb", size, before);
}

/* Older kernels don't have the clock that the record uses. */
static int set_clock(struct trace *trace)
{
	int err = set(trace, "trace_clock", "mono");

	return err == -EINVAL ? set(trace, "trace_clock", "global") : err;
}

/* "sched_wakeup" or "sched:sched_wakeup", either with a star at the end. */
static bool matches(const char *pattern, const char *event)
{
	const char *colon = strchr(event, ':');
	size_t length = strcspn(pattern, "*");

	if (!colon)
		return false;
	event = strchr(pattern, ':') ? event : colon + 1;
	return pattern[length] ? !strncmp(event, pattern, length) : !strcmp(event, pattern);
}

static int add_event(struct trace *trace, const char *event)
{
	if (trace->n_events == TRACE_EVENTS)
		return -E2BIG;
	char *folder = trace->events[trace->n_events];

	snprintf(folder, sizeof(trace->events[0]), "%s", event);
	*strchr(folder, ':') = '/';
	for (int i = 0; i < trace->n_events; i++)
		if (!strcmp(trace->events[i], folder))
			return 0;
	trace->n_events++;
	return 0;
}

/* How many events there are for a pattern; names have a zero behind each and one more behind the last. */
static int find_events(struct trace *trace, const char *pattern, const char *names)
{
	int found = 0;

	for (; *names; names += strlen(names) + 1) {
		if (!matches(pattern, names))
			continue;
		if (add_event(trace, names))
			return -E2BIG;
		found++;
	}
	return found;
}

static int choose_from(struct trace *trace, const char *names, char *why, size_t room)
{
	char copy[sizeof(trace->patterns)], *rest = NULL;
	size_t used = 0;

	snprintf(copy, sizeof(copy), "%s", trace->patterns);
	for (char *one = strtok_r(copy, "+", &rest); one; one = strtok_r(NULL, "+", &rest)) {
		int found = find_events(trace, one, names);

		if (found < 0)
			return refuse(why, room, found, "--trace takes %d events at most; '%s' makes them more", TRACE_EVENTS, one);
		if (!found && trace->given)
			return refuse(why, room, -EINVAL, "this kernel has no event '%s' to trace", one);
		if (!found)
			used += (size_t)snprintf(trace->missing + used, sizeof(trace->missing) - used, " %s", one);
	}
	return trace->n_events ? 0 : refuse(why, room, -EINVAL, "this kernel has none of the events to trace");
}

static int choose_events(struct trace *trace, char *why, size_t room)
{
	char path[TRACEFS_PATH], *names = malloc(NAMES_ROOM);

	snprintf(path, sizeof(path), "%s/available_events", trace->root);
	int err = names ? text_read_file(path, names, NAMES_ROOM - 1) : -ENOMEM;

	if (err < 0) {
		refuse(why, room, err, "the kernel does not tell which events it has to trace: %s", strerror(-err));
	} else {
		names[err] = '\0';
		for (char *end = names; (end = strchr(end, '\n')); end++)
			*end = '\0';
		err = choose_from(trace, names, why, room);
	}
	free(names);
	return err;
}

typedef int (*write_value)(struct trace *trace, const char *file, const char *value);

static int switch_events(struct trace *trace, bool on, write_value write)
{
	char file[128];
	int err = 0;

	for (int i = 0; i < trace->n_events && !err; i++) {
		snprintf(file, sizeof(file), "events/%s/enable", trace->events[i]);
		err = write(trace, file, on ? "1" : "0");
	}
	return err;
}

/* Four blocks after each other are on, off, off, on, or the other way round, as chance has it; the seed decides. */
static bool is_on_in(const struct trace *trace, int64_t block)
{
	uint32_t mixed = (uint32_t)trace->seed + (uint32_t)(block / 4) * 0x9e3779b9u;
	bool inner = block % 4 == 1 || block % 4 == 2;

	mixed = (mixed ^ mixed >> 16) * 0x7feb352du;
	mixed = (mixed ^ mixed >> 15) * 0x846ca68bu;
	return inner == (mixed >> 31);
}

static int set_up(struct trace *trace, char *why, size_t room)
{
	const char *what = "start what puts it back";
	int err = undo_open(&trace->undo);

	if (!err) {
		what = "have a place of its own, and somebody else uses the only one";
		tracefs_in_use(trace->root, NULL);
		err = take_a_place(trace);
	}
	if (!err) {
		what = "be stopped before it starts";
		err = set(trace, "tracing_on", "0");
	}
	if (!err) {
		what = "have a buffer of its size";
		err = set_buffer(trace);
	}
	if (!err) {
		what = "have a clock";
		err = set_clock(trace);
	}
	if (err)
		return refuse(why, room, err, "the trace can't %s: %s", what, strerror(-err));
	err = choose_events(trace, why, room);
	if (err)
		return err;
	err = switch_events(trace, true, set);
	return err ? refuse(why, room, err, "the events can't be switched on: %s", strerror(-err)) : 0;
}

static int refuse_tracefs(int err, char *why, size_t room)
{
	if (err == -ENOENT || err == -ENODEV)
		return refuse(why, room, err, "there is no trace to be had: this kernel has no tracefs (CONFIG_TRACING)");
	if (geteuid())
		return refuse(why, room, err, "a trace needs root (%s)", strerror(-err));
	return refuse(why, room, err, "tracefs can't be used, maybe because the kernel is locked down: %s", strerror(-err));
}

int trace_open(struct run *run, char *why, size_t room)
{
	struct trace *trace = &run->trace;

	if (!run->config->trace)
		return 0;
	int err = tracefs_reach(&trace->root);

	if (err)
		return refuse_tracefs(err, why, room);
	err = set_up(trace, why, room);
	if (!err && run->config->trace_blocks_ns && !is_on_in(trace, 0))
		switch_events(trace, false, put);
	return err;
}

/* The time of the event is that when all was switched. */
static void note(struct run *run, bool on, int64_t since_ns, const char *what)
{
	run_note(run, WHOLE_RUN, on ? "trace_on" : "trace_off", "%s; took_ns=%lld", what, (long long)(clock_now_ns() - since_ns));
}

static void record_now(struct run *run, bool on, const char *what)
{
	int64_t since_ns = clock_now_ns();
	int err = put(&run->trace, "tracing_on", on ? "1" : "0");

	if (err)
		run_ask_to_stop(run, END_ERROR, "the trace could not be switched");
	run->trace.recording = on;
	note(run, on, since_ns, what);
}

static void begin_block(struct run *run)
{
	struct trace *trace = &run->trace;
	bool on = is_on_in(trace, trace->block);
	int64_t since_ns = clock_now_ns();
	char what[40];

	if (trace->block && on != is_on_in(trace, trace->block - 1) && switch_events(trace, on, put))
		run_ask_to_stop(run, END_ERROR, "the events could not be switched");
	snprintf(what, sizeof(what), "block=%lld", (long long)trace->block++);
	note(run, on, since_ns, what);
}

/* False if it was ended before; also asked when the time is past, or one that is always late would never end. */
static bool wait_until(const struct trace *trace, int64_t time_ns)
{
	struct pollfd end = { .fd = trace->ends[0], .events = POLLIN };
	int64_t left_ns;

	do {
		left_ns = time_ns - clock_now_ns();
		int64_t left_ms = left_ns > 0 ? left_ns / 1000000 + 1 : 0;

		if (poll(&end, 1, left_ms < 1000 ? (int)left_ms : 1000) > 0)
			return false;
	} while (left_ns > 0);
	return true;
}

static void *switch_by_time(void *argument)
{
	struct run *run = argument;
	struct trace *trace = &run->trace;
	int64_t block_ns = run->config->trace_blocks_ns;

	if (!wait_until(trace, run->origin_ns))
		return NULL;
	record_now(run, true, "loop=begins");
	while (block_ns && wait_until(trace, run->origin_ns + trace->block * block_ns))
		begin_block(run);
	return NULL;
}

void trace_start(struct run *run)
{
	struct trace *trace = &run->trace;

	if (!run->config->trace)
		return;
	int err = pipe2(trace->ends, O_CLOEXEC) < 0 ? -errno : thread_start(&trace->thread, switch_by_time, run);

	trace->runs = !err;
	if (err)
		run_ask_to_stop(run, END_ERROR, "the thread that switches the trace could not be started");
}

void trace_stop(struct run *run)
{
	struct trace *trace = &run->trace;

	if (!trace->runs)
		return;
	trace->runs = false;
	close(trace->ends[1]);
	pthread_join(trace->thread, NULL);
	close(trace->ends[0]);
	if (trace->recording)
		record_now(run, false, "loop=ends");
}

void trace_close(struct run *run)
{
	undo_close(&run->trace.undo);
}
