/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/trace.h"

#include "system/clock.h"
#include "system/text.h"
#include "system/threads.h"
#include "trace/faults.h"
#include "trace/marks.h"
#include "trace/pages.h"
#include "trace/stacks.h"
#include "trace/symbols.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_ROOM = 512 * 1024, STACK_LATE_NS = 50000 };

#define KALLSYMS "/proc/kallsyms"
#define MODULES "/proc/modules"

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

#define NAMES "options/record-cmd"

/*
 * Whether the kernel noted names, and does so no more. It notes that of each thread at each waking and each switch, for its own text
 * of the events, which costs a thread 0.46 us in virtual time; sched_switch has the names. There is one switch for all traces.
 */
static bool note_no_names(struct trace *trace)
{
	char path[TRACEFS_PATH + 128], text[TRACEFS_TEXT];

	snprintf(path, sizeof(path), "%s/" NAMES, trace->root);
	if (!trace->plan.explains || tracefs_read(trace->root, NAMES, text) || *text != '1')
		return false;
	trace->no_names = !undo_write(&trace->undo, path, "0");
	return trace->no_names;
}

/* An instance goes on without names, for it keeps what was so when it was made. */
static void note_names_again(const struct trace *trace)
{
	char path[TRACEFS_PATH + 128];

	snprintf(path, sizeof(path), "%s/" NAMES, trace->root);
	(void)text_write_file(path, "1");
}

/* Everything at the top is there but once, so nobody else may use it. */
static int take_the_top(struct trace *trace)
{
	char text[TRACEFS_TEXT];

	if (tracefs_read(trace->root, "current_tracer", text) || !text_has_word(text, "nop") ||
	    tracefs_read(trace->root, "set_event", text) || *text)
		return -EBUSY;
	snprintf(trace->place, sizeof(trace->place), "%s", trace->root);
	(void)note_no_names(trace);
	return replace(trace, "trace", "", "");
}

#define COPY_OF_MARKERS "options/copy_trace_marker"

/* What programs write into trace_marker comes to the top. Since Linux 6.16 an instance can have a copy. */
static bool needs_the_top(const struct trace *trace)
{
	char path[TRACEFS_PATH + 128];

	snprintf(path, sizeof(path), "%s/" COPY_OF_MARKERS, trace->root);
	return marks_are_written(trace->plan.marks) && access(path, F_OK) < 0;
}

/* Instances came with Linux 3.10. One with an open file can't be removed by those who don't see that this process lives. */
static int take_a_place(struct trace *trace)
{
	char path[TRACEFS_PATH + 128];

	if (needs_the_top(trace))
		return take_the_top(trace);
	tracefs_name_instance(trace->root, trace->place);
	bool noted = note_no_names(trace);
	int err = undo_mkdir(&trace->undo, trace->place);

	if (noted)
		note_names_again(trace);
	trace->own = !err;
	tracefs_take(err ? NULL : trace->place);
	if (err == -ENOENT || err == -EROFS)
		return take_the_top(trace);
	path_of(trace, "tracing_on", path);
	trace->hold = err ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	return !err && marks_are_written(trace->plan.marks) ? put(trace, COPY_OF_MARKERS, "1") : err;
}

static int set_buffer(struct trace *trace)
{
	char size[24], before[TRACEFS_TEXT];
	int err = tracefs_read(trace->place, "buffer_size_kb", before);

	before[strspn(before, "0123456789")] = '\0'; /* more may follow, such as what it will be */
	snprintf(size, sizeof(size), "%lld", (long long)trace->plan.buffer_kib);
	return err ? err : replace(trace, "buffer_size_kb", size, before);
}

/* Older kernels don't have the clock that the record uses. */
static int set_clock(struct trace *trace)
{
	int err = set(trace, "trace_clock", "mono");

	return err == -EINVAL ? set(trace, "trace_clock", "global") : err;
}

#define TIMER_DEVICE "/sys/devices/system/clockevents/clockevent0/current_device"

/* Without a high resolution, much of the local timer's interrupt is no timer's function, and hyper-visors have vectors of their own. */
static enum timer_interrupt timer_interrupt(void)
{
#if defined(__arm__) || defined(__aarch64__)
	return TIMER_OF_HANDLER;
#else
	struct timespec least;
	char device[64];

	if (clock_getres(CLOCK_MONOTONIC, &least) < 0 || least.tv_sec || least.tv_nsec > 1)
		return TIMER_UNKNOWN;
	return text_read_line(TIMER_DEVICE, device, sizeof(device)) < 0 || strncmp(device, "lapic", 5) != 0 ? TIMER_UNKNOWN : TIMER_OF_VECTOR;
#endif
}

static int choose_events(struct trace *trace, char *why, size_t room)
{
	char path[TRACEFS_PATH], *names = malloc(NAMES_ROOM);

	snprintf(path, sizeof(path), "%s/available_events", trace->root);
	int err = names ? text_read_file(path, names, NAMES_ROOM - 1) : -ENOMEM;

	if (err < 0) {
		text_refuse(why, room, err, "the kernel does not tell which events it can trace: %s", strerror(-err));
	} else {
		names[err] = '\0';
		for (char *end = names; (end = strchr(end, '\n')); end++)
			*end = '\0';
		trace->plan.timer = timer_interrupt();
		err = trace_choose(&trace->plan, names, why, room);
	}
	free(names);
	return err;
}

/* Those of all threads would be more than all else. A kernel that cannot filter by name says so by refusing. */
static int filter_calls(struct trace *trace)
{
	char file[128];
	int err = 0;

	for (int i = 0; i < trace->plan.n_events && *trace->plan.calls_of && !err; i++) {
		snprintf(file, sizeof(file), "events/%s/filter", trace->plan.events[i]);
		if (trace_is_of_calls(trace->plan.events[i]))
			err = replace(trace, file, trace->plan.calls_of, "0");
	}
	return err;
}

/* Those of other threads explain nothing. All are recorded where the kernel cannot filter by name, or the names are too many. */
static void filter_faults(struct trace *trace)
{
	const struct trace_plan *plan = &trace->plan;
	char filter[512], file[128];
	size_t used = 0;

	if (!plan->recorder || plan->given)
		return;
	for (int i = 0; i < trace->run->config->threads && used < sizeof(filter); i++)
		used += (size_t)snprintf(filter + used, sizeof(filter) - used, "%scomm == \"rtproof-%d\"", i ? " || " : "", i);
	for (int i = 0; i < plan->n_events && used < sizeof(filter); i++) {
		snprintf(file, sizeof(file), "events/%s/filter", plan->events[i]);
		if (strstr(file, "/page_fault_"))
			(void)replace(trace, file, filter, "0");
	}
}

static int filter_marks(struct trace *trace, char *why, size_t room)
{
	char file[MARK_EVENT + 32], event[MARK_EVENT];

	for (int i = 0; i < MARKS; i++) {
		const char *filter = marks_filter(trace->plan.marks[i]);

		if (!filter)
			continue;
		marks_event(trace->plan.marks, i, event);
		snprintf(file, sizeof(file), "events/%s/filter", event);
		*strchr(file, ':') = '/';
		int err = replace(trace, file, filter, "0");

		if (err)
			return text_refuse(why, room, err, "the kernel does not take the filter of '%.200s': %s", trace->plan.marks[i], undo_error(err));
	}
	return 0;
}

typedef int (*write_value)(struct trace *trace, const char *file, const char *value);

/* at: in which of the events it got stuck. */
static int switch_events(struct trace *trace, bool on, write_value write, int *at)
{
	char file[128];
	int err = 0;

	for (*at = 0; *at < trace->plan.n_events && !err; ++*at) {
		snprintf(file, sizeof(file), "events/%s/enable", trace->plan.events[*at]);
		err = write(trace, file, on ? "1" : "0");
	}
	--*at;
	return err;
}

static int set_up(struct trace *trace, char *why, size_t room)
{
	const char *what = "start its clean-up";
	int at, err = undo_open(&trace->undo);

	if (!err) {
		tracefs_in_use(trace->root, NULL);
		err = marks_define(&trace->undo, trace->root, trace->plan.marks, why, room);
		if (err)
			return err;
		trace->plan.probes_faults = *trace->plan.calls_of && faults_define(&trace->undo, trace->root);
		err = take_a_place(trace);
		what = err == -EBUSY ? "use the kernel's only trace, because another program does" : "have a place in tracefs";
	}
	if (!err) {
		what = "be stopped before it starts";
		err = set(trace, "tracing_on", "0");
	}
	if (!err) {
		what = "get a buffer of its size";
		err = set_buffer(trace);
	}
	if (!err) {
		what = "set its clock";
		err = set_clock(trace);
	}
	if (err)
		return text_refuse(why, room, err, "the trace can't %s: %s", what, undo_error(err));
	err = choose_events(trace, why, room);
	if (err)
		return err;
	err = filter_marks(trace, why, room);
	if (err)
		return err;
	err = filter_calls(trace);
	if (err)
		return text_refuse(why, room, err, "the system calls of the threads can't be told from others: %s", undo_error(err));
	filter_faults(trace);
	err = switch_events(trace, true, set, &at);
	return err ? text_refuse(why, room, err, "the event %s can't be switched on: %s", trace->plan.events[at], undo_error(err)) : 0;
}

static int refuse_tracefs(int err, char *why, size_t room)
{
	if (err == -ENOENT || err == -ENODEV)
		return text_refuse(why, room, err, "there is no trace: this kernel has no tracefs (CONFIG_TRACING)");
	if (geteuid())
		return text_refuse(why, room, err, "a trace needs root (%s)", strerror(-err));
	return text_refuse(why, room, err, "tracefs can't be used, maybe because the kernel is locked down or this is a container: %s", strerror(-err));
}

/* Those that can't be had are told in trace/about. At the top of tracefs others would have them in their traces. */
static void set_stacks(struct trace *trace)
{
	int64_t late_ns = trace->recorder.threshold_ns ? trace->recorder.threshold_ns / 2 : STACK_LATE_NS;

	snprintf(trace->stacks, sizeof(trace->stacks), "not asked for");
	if (trace->plan.stacks && !trace->own)
		snprintf(trace->stacks, sizeof(trace->stacks), "none: the kernel has no instances");
	else if (trace->plan.stacks)
		(void)stacks_set(&trace->undo, trace->root, trace->place, late_ns, trace->stacks, sizeof(trace->stacks));
}

/* Before memory is locked. Without them functions have no names, and trace/kallsyms tells why. */
static void open_symbols(struct trace *trace)
{
	struct page_layout layout;
	char text[TRACEFS_TEXT];

	trace->symbols = calloc(1, sizeof(*trace->symbols));
	trace->recorder.symbols = trace->symbols;
	int err = trace->symbols ? tracefs_read(trace->root, "events/header_page", text) : -ENOMEM;

	err = err ? err : page_layout_parse(text, &layout);
	trace->symbols_error = err ? err : symbols_open(trace->symbols, layout.commit_size, KALLSYMS, MODULES);
}

/* The kernel's events have the thread ids of the first namespace, which links such as this one tell from Linux 3.8 on. */
static bool in_a_pid_namespace(void)
{
	char link[32] = "";

	return readlink("/proc/self/ns/pid", link, sizeof(link) - 1) > 0 && strcmp(link, "pid:[4026531836]") != 0;
}

static int open_all(struct trace *trace, char *why, size_t room)
{
	int at, err = tracefs_reach(&trace->root);

	if (err)
		return refuse_tracefs(err, why, room);
	if ((trace->plan.recorder || trace->plan.whole) && in_a_pid_namespace())
		return text_refuse(why, room, -EPERM,
				   "the kernel's events have other thread ids than this container: share the host's (--pid=host), or measure outside");
	err = set_up(trace, why, room);
	if (!err)
		open_symbols(trace);
	if (!err)
		err = recorder_open(&trace->recorder, trace->run, trace->root, trace->place, why, room);
	if (!err) {
		set_stacks(trace);
		waits_open(&trace->waits, &trace->undo, trace->root, &trace->plan);
	}
	if (!err && trace->plan.blocks_ns && !trace->plan.recorder && !trace_is_on_in(&trace->plan, 0))
		switch_events(trace, false, put, &at);
	return err;
}

int trace_open(struct trace *trace, struct run *run, char *why, size_t room)
{
	trace->run = run;
	trace->recorder.plan = &trace->plan;
	if (!trace->plan.asked)
		return 0;
	int err = open_all(trace, why, room);

	if (!err || !trace->plan.optional)
		return err;
	snprintf(trace->refused, sizeof(trace->refused), "%s", why);
	trace_close(trace);
	trace->plan.asked = trace->plan.recorder = trace->plan.whole = false;
	return 0;
}

/* The time of the event is that when all was switched. */
static void note(struct run *run, bool on, int64_t since_ns, const char *what)
{
	run_note(run, WHOLE_RUN, on ? "trace_on" : "trace_off", "%s; took_ns=%lld", what, (long long)(clock_now_ns() - since_ns));
}

static void record_now(struct trace *trace, bool on, const char *what)
{
	int64_t since_ns = clock_now_ns();
	int err = put(trace, "tracing_on", on ? "1" : "0");

	if (err)
		run_ask_to_stop(trace->run, END_ERROR, "the trace could not be switched");
	trace->recording = on;
	note(trace->run, on, since_ns, what);
}

/* Many events take a second and more to be switched on a busy machine, which disturbs it: the recorder's stay where they are. */
static int switch_block(struct trace *trace, bool on)
{
	int at;

	return trace->plan.recorder ? put(trace, "tracing_on", on ? "1" : "0") : switch_events(trace, on, put, &at);
}

static void begin_block(struct trace *trace)
{
	bool on = trace_is_on_in(&trace->plan, trace->block), before = trace->plan.recorder || on;
	int64_t since_ns = clock_now_ns();
	char what[40];

	if (trace->block)
		before = trace_is_on_in(&trace->plan, trace->block - 1);
	if (on != before && switch_block(trace, on))
		run_ask_to_stop(trace->run, END_ERROR, "the events could not be switched");
	snprintf(what, sizeof(what), "block=%lld", (long long)trace->block++);
	note(trace->run, on, since_ns, what);
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
	struct trace *trace = argument;
	int64_t block_ns = trace->plan.blocks_ns, turns = trace->plan.turns;

	if (trace->plan.recorder)
		recorder_place(trace->run); /* a late switch spoils its block */
	if (!wait_until(trace, trace->run->origin_ns))
		return NULL;
	record_now(trace, true, "loop=begins");
	recorder_begin(&trace->recorder, clock_now_ns());
	if (trace->plan.whole && trace->run->config->progress_ns) /* the desk lets the program begin that is to be traced */
		fputs("tracing\n", stderr);
	/* The block behind the last turn is on for good. */
	while (block_ns && (!turns || trace->block <= turns) && wait_until(trace, trace->run->origin_ns + trace->block * block_ns))
		begin_block(trace);
	/* A program loads its libraries early, and may end at any time. */
	for (int64_t look_ns = NS_PER_SECOND / 4; trace->plan.process && wait_until(trace, trace->run->origin_ns + look_ns); look_ns *= 2)
		waits_look(&trace->waits, trace->plan.process);
	return NULL;
}

void trace_start(struct trace *trace)
{
	if (!trace->plan.asked)
		return;
	int err = pipe2(trace->ends, O_CLOEXEC) < 0 ? -errno : thread_start(&trace->thread, switch_by_time, trace);

	trace->runs = !err;
	err = err ? err : recorder_start(&trace->recorder);
	if (err)
		run_ask_to_stop(trace->run, END_ERROR, "the thread that switches the trace could not be started");
}

void trace_stop(struct trace *trace)
{
	if (!trace->runs)
		return;
	trace->runs = false;
	close(trace->ends[1]);
	pthread_join(trace->thread, NULL);
	close(trace->ends[0]);
	if (trace->recording)
		record_now(trace, false, "loop=ends");
	recorder_stop(&trace->recorder);
}

void trace_close(struct trace *trace)
{
	recorder_close(&trace->recorder); /* a place with open files can't go */
	if (trace->own && trace->hold >= 0)
		close(trace->hold);
	waits_close(&trace->waits);
	trace->own = false;
	tracefs_take(NULL);
	if (trace->symbols)
		symbols_close(trace->symbols);
	free(trace->symbols);
	trace->symbols = NULL;
	bytes_free(&trace->prepared);
	undo_close(&trace->undo);
}

/* A part of a file is a chunk. It fits into the reserve behind the end of the record, and holds whole pages of any buffer. */
enum { PART = 64 * 1024, FORMATS_MOST = 16 * PART, PACK_FROM = 512 };

static int fill(int fd, char *part)
{
	ssize_t n = 1;
	int length = 0;

	while (length < PART && n > 0) { /* a trace is handed out in pieces, its raw pages one by one */
		n = read(fd, part + length, (size_t)(PART - length));
		length += n > 0 ? (int)n : 0;
	}
	return length;
}

/* Beside windows, texts would be a good part of the record. */
static void put_content(struct trace *trace, enum moment moment, const char *name, int err, const char *part, size_t length)
{
	struct bytes *packed = &trace->recorder.packed;
	char path[160];
	bool packs = trace->plan.recorder && !err && length >= PACK_FROM;

	packed->length = 0;
	if (packs)
		put_deflated(packed, (const uint8_t *)part, length, &trace->recorder.table);
	packs = packs && !packed->failed;
	snprintf(path, sizeof(path), "%s%s", name, packs ? ".deflate" : "");
	record_content(&trace->run->record, run_time_ns(trace->run), moment, path, err, packs ? (const char *)packed->data : part,
		       packs ? packed->length : length);
}

static void keep_part(struct trace *trace, const char *name, int err, const char *part, size_t length)
{
	char kept[128];

	snprintf(kept, sizeof(kept), "trace/%s", name);
	if (trace->prepares) {
		put_string(&trace->prepared, kept);
		put_u32(&trace->prepared, (uint32_t)length);
		put_bytes(&trace->prepared, part, length);
		return;
	}
	put_content(trace, MOMENT_END, kept, err, part, length);
}

/* The content of a file in parts under one name, up to a size. symbols: NULL, or those that take its addresses. */
static void keep(struct trace *trace, const char *path, const char *name, int64_t most, struct symbols *symbols)
{
	char *part = malloc(PART);
	int length, fd = part ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;

	while (fd >= 0 && most > 0 && !trace->run->record.no_space && (length = fill(fd, part)) > 0) {
		keep_part(trace, name, 0, part, (size_t)length);
		if (symbols)
			symbols_see(symbols, (const uint8_t *)part, (size_t)length);
		most -= length;
	}
	if (fd >= 0)
		close(fd);
	free(part);
}

/* What a file in a folder of tracefs has, under the file's own name. */
static void keep_below(struct trace *trace, const char *folder, const char *file, int64_t most)
{
	char path[2 * TRACEFS_PATH + 128];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	keep(trace, path, file, most, NULL);
}

static void keep_cpus(struct trace *trace, struct symbols *symbols)
{
	char path[TRACEFS_PATH + 64], name[64];

	for (int cpu = 0; cpu < CPUS_MOST; cpu++) {
		snprintf(path, sizeof(path), "%s/per_cpu/cpu%d", trace->place, cpu);
		if (access(path, F_OK) < 0)
			return;
		snprintf(path, sizeof(path), "%s/per_cpu/cpu%d/stats", trace->place, cpu);
		snprintf(name, sizeof(name), "cpu%d/stats", cpu);
		keep(trace, path, name, PART, NULL);
		if (trace->plan.recorder || trace->plan.whole)
			continue;
		snprintf(path, sizeof(path), "%s/per_cpu/cpu%d/trace_pipe_raw", trace->place, cpu);
		snprintf(name, sizeof(name), "cpu%d/raw", cpu);
		keep(trace, path, name, 2 * trace->plan.buffer_kib * 1024, symbols);
	}
}

/* Those of the system ftrace: events that come without being asked for, such as marks and stacks. */
static void keep_own_formats(struct trace *trace)
{
	char file[TRACEFS_PATH + 128];

	snprintf(file, sizeof(file), "%s/events/ftrace", trace->root);
	DIR *folder = opendir(file);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) > 64)
			continue;
		snprintf(file, sizeof(file), "events/ftrace/%.64s/format", entry->d_name);
		keep_below(trace, trace->root, file, PART);
	}
	if (folder)
		closedir(folder);
}

static void keep_formats(struct trace *trace)
{
	char file[TRACEFS_PATH + 16];

	snprintf(file, sizeof(file), "%s/events", trace->root);
	keep_below(trace, file, "header_page", PART);
	keep_below(trace, file, "header_event", PART);
	keep_own_formats(trace);
	for (int i = 0; i < trace->plan.n_events; i++) {
		snprintf(file, sizeof(file), "events/%s/format", trace->plan.events[i]);
		keep_below(trace, trace->root, file, PART);
	}
	if (trace->waits.on)
		keep_below(trace, trace->root, "events/" WAITS_EXEC "/format", PART);
	keep_below(trace, trace->root, "printk_formats", FORMATS_MOST);
	keep_below(trace, trace->place, "trace_clock", PART);
}

/* What a reader of the raw pages must know, and what was asked and is not there. */
static void tell(struct trace *trace)
{
	const uint16_t one = 1;
	char text[1536];
	int length = snprintf(text, sizeof(text), "endian %s\nbuffer_kib %lld\nplace %s\nmissing%s\nstacks %s\nwaits %s\n",
			      *(const char *)&one ? "little" : "big", (long long)trace->plan.buffer_kib,
			      trace->own ? "instance" : "top", trace->plan.missing, trace->stacks, trace->waits.told);

	keep_part(trace, "about", 0, text, (size_t)length);
}

static void keep_symbols(struct trace *trace)
{
	struct bytes text = { NULL, 0, 0, false };

	if (!trace->symbols_error)
		symbols_tell(trace->symbols, KALLSYMS, &text);
	for (size_t at = 0; at < text.length && !trace->run->record.no_space; at += PART)
		keep_part(trace, "kallsyms", 0, (const char *)text.data + at, text.length - at < PART ? text.length - at : PART);
	if (!text.length)
		keep_part(trace, "kallsyms", trace->symbols_error, "", 0);
	bytes_free(&text);
}

void trace_prepare(struct trace *trace)
{
	char text[TRACEFS_TEXT];

	if (!trace->plan.asked)
		return;
	trace->prepares = true;
	tell(trace);
	recorder_tell(&trace->recorder, text, sizeof(text));
	keep_part(trace, "about", 0, text, strlen(text));
	keep_formats(trace);
	trace->prepares = false;
}

static uint32_t number_at(const uint8_t *at, int size)
{
	uint32_t value = 0;

	while (size--)
		value = value << 8 | at[size];
	return value;
}

/* As keep_part() noted them: the name, the content. */
static void keep_prepared(struct trace *trace)
{
	const struct bytes *prepared = &trace->prepared;
	char name[128];

	if (prepared->failed)
		record_content(&trace->run->record, run_time_ns(trace->run), MOMENT_START, "trace/header_page", -ENOMEM, "", 0);
	for (size_t at = 0; !prepared->failed && at < prepared->length;) {
		size_t length = number_at(prepared->data + at, 2);

		snprintf(name, sizeof(name), "%.*s", (int)length, (const char *)prepared->data + at + 2);
		at += 2 + length;
		length = number_at(prepared->data + at, 4);
		put_content(trace, MOMENT_START, name, 0, (const char *)prepared->data + at + 4, length);
		at += 4 + length;
	}
	bytes_free(&trace->prepared);
}

void trace_describe(struct trace *trace)
{
	if (!trace->plan.asked)
		return;
	keep_prepared(trace);
	for (int i = 0; i < trace->run->config->threads; i++) /* whom the trace is about; again with the others at the end */
		run_fact_number(trace->run, i, MOMENT_START, "tid", worker_task(&trace->run->workers[i]));
}

/* The newest, and where the code of the program lies. */
static void keep_waits(struct trace *trace)
{
	char path[TRACEFS_PATH + 64], name[64];

	waits_look(&trace->waits, trace->plan.process);
	for (int cpu = 0; cpu < trace->plan.cpus && trace->waits.on; cpu++) {
		snprintf(path, sizeof(path), "%s/per_cpu/cpu%d/trace_pipe_raw", trace->waits.place, cpu);
		snprintf(name, sizeof(name), "waits/cpu%d", cpu);
		keep(trace, path, name, 4 * trace->plan.buffer_kib * 1024, NULL);
	}
	if (trace->waits.maps.length)
		keep_part(trace, "waits/maps", 0, (const char *)trace->waits.maps.data, trace->waits.maps.length);
}

/* The kernel's own text of the events, which is three times as long as its pages, is made from these by who reads them. */
void trace_keep(struct trace *trace)
{
	char text[TRACEFS_TEXT];

	if (!trace->plan.asked)
		return;
	if (trace->symbols && !trace->symbols_error)
		symbols_renew(trace->symbols, MODULES); /* some may have come during the run */
	keep_cpus(trace, trace->symbols_error ? NULL : trace->symbols);
	keep_waits(trace);
	recorder_keep(&trace->recorder, text, sizeof(text)); /* gives room back to a disk that is full */
	keep_part(trace, "about", 0, text, strlen(text));
	keep(trace, MODULES, "modules", FORMATS_MOST, NULL);
	if (!trace->no_names) /* those that the kernel still has may be of threads that are gone */
		keep_below(trace, trace->root, "saved_cmdlines", FORMATS_MOST);
	keep_symbols(trace);
}
