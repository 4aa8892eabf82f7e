/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/plan.h"

#include "system/clock.h"
#include "system/folder.h"
#include "system/text.h"
#include "trace/faults.h"
#include "trace/stacks.h"

#include <stdio.h>
#include <string.h>

enum {
	KIB = 1024,
	BUFFER_MOST_KIB = 1024,       /* of a CPU, where the user says nothing */
	BUFFERS_MOST_KIB = 64 * 1024, /* of all together, " */
	BUFFER_LEAST_KIB = 16,
	BUFFER_LIMIT_KIB = 16 * 1024 * 1024,
	TRACE_NAMES_MOST = 1024 * KIB, /* formats, modules, functions */
	NEWEST_MOST = 1024 * KIB,      /* of each CPU, with the flight recorder */
	NEWEST_LEAST = 64 * KIB,
	NEWEST_ALL_MOST = 64 * 1024 * KIB,
	HELD_MOST = 8 * 1024 * KIB, /* of windows */
	HELD_LEAST = 256 * KIB,
	TOP_DEFAULT = 256,
	ORDINARY_DEFAULT = 32,
	WINDOWS_LIMIT = 512,
	RECORD_DEFAULT_KIB = 3584,
	KEEP_DEFAULT_MIB = 256,
	KEEP_LIMIT_MIB = 512, /* the host opens no record whose files take more than 640 MiB */
	TURNS_LIMIT = 4000,
	PROCESS_LIMIT = 1 << 22,
};

/* What article 3 recorded, and the switches between threads. A star stands for any ending; 32-bit systems have others. */
static const char presets[] = "sched_wakeup+sched_wakeup_new+sched_waking+sched_switch+sys_enter_clock_nanosleep*+"
			      "sys_exit_clock_nanosleep*+sys_enter_nanosleep*+sys_exit_nanosleep*+spi_*+irq_handler_*";

/*
 * What tells why an activation was late: who had the CPU, whom interrupts hit, whose timers and softirqs ran before. Vectors of
 * x86 have no irq_handler events, so all of them are needed: without one, its time would look like "interrupts off". The last ones
 * tell who made another CPU call a function; up to Linux 6.4 only ARM tells who sent an interrupt.
 */
static const char explaining[] = "sched:sched_switch+sched:sched_waking|sched:sched_wakeup+sched:sched_wakeup_new+irq:irq_handler_*+"
				 "irq:softirq_entry+irq:softirq_exit+timer:hrtimer_expire_*+irq_vectors:*+ipi:ipi_entry+ipi:ipi_exit+"
				 "timer:hrtimer_start+power:cpu_idle+nmi:nmi_handler+exceptions:page_fault_*+"
				 "sched:sched_migrate_task+sched:sched_pi_setprio+task:task_rename+block:block_rq_complete+"
				 "csd:csd_queue_cpu|ipi:ipi_raise+csd:csd_function_entry";

/* When a measured thread returned from its sleep. Left out where that is the end of an activation, or where the ends of all calls are traced. */
static const char *const of_sleeps[] = { "sys_enter_clock_nanosleep*", "sys_exit_clock_nanosleep*" };

/*
 * What the threads themselves do. The third last tells which file is read from its disk. The last two come at the end of a page fault, where the kernel has no probes: the one until Linux
 * counted pages one by one, the other from then on. The first makes each lock of each process slower, so it is taken only there.
 */
static const char calls_end[] = "raw_syscalls:sys_exit", faults_end[] = "mmap_lock:mmap_lock_released", counted[] = "kmem:rss_stat";
static const char *const of_calls[] = { calls_end, "raw_syscalls:sys_enter", "signal:signal_deliver",
					"filemap:mm_filemap_add_to_page_cache", faults_end, counted };

enum { COUNTED_MAJOR = 6, COUNTED_MINOR = 2 };

static void use(struct trace_plan *plan, const char *patterns)
{
	snprintf(plan->patterns, sizeof(plan->patterns), "%s", patterns);
}

static int parse_events(struct trace_plan *plan, const char *patterns, char *why, size_t room)
{
	if (strlen(patterns) >= sizeof(plan->patterns))
		return text_refuse(why, room, -EINVAL, "the list of events is too long: --trace takes %d characters of events at most",
				    TRACE_PATTERNS - 1);
	use(plan, patterns);
	plan->given = true;
	plan->explains = false;
	return 0;
}

/* Options with a number. */
static bool parse_value(struct trace_plan *plan, const char *option)
{
	const struct {
		const char *name;
		int64_t least, most, *value;
	} numbers[] = {
		{ "buffer_kib=", 4, BUFFER_LIMIT_KIB, &plan->buffer_kib },
		{ "seed=", 0, UINT32_MAX, &plan->seed },
		{ "turns=", 0, TURNS_LIMIT, &plan->turns },
		{ "top=", 0, WINDOWS_LIMIT, &plan->top },
		{ "record_kib=", 16, BUFFER_LIMIT_KIB, &plan->record_kib },
		{ "ordinary=", 0, WINDOWS_LIMIT, &plan->ordinary },
		{ "keep_mib=", 1, KEEP_LIMIT_MIB, &plan->keep_mib },
		{ "process=", 1, PROCESS_LIMIT, &plan->process },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		size_t length = strlen(numbers[i].name);

		if (!strncmp(option, numbers[i].name, length))
			return !text_number(option + length, numbers[i].least, numbers[i].most, numbers[i].value);
	}
	return !strncmp(option, "threshold=", 10) && !text_duration_ns(option + 10, &plan->threshold_ns) && plan->threshold_ns;
}

static bool parse_word(struct trace_plan *plan, const char *option)
{
	bool recorder = !strcmp(option, "recorder"), whole = !strcmp(option, "whole");

	if (!strcmp(option, "optional"))
		plan->optional = true;
	else if (!strcmp(option, "stacks"))
		plan->stacks = true;
	else if (!recorder && !whole && strcmp(option, "explain"))
		return false;
	else if (!plan->given) {
		use(plan, explaining);
		plan->explains = true;
	}
	plan->recorder = plan->recorder || recorder;
	plan->whole = plan->whole || whole;
	return true;
}

/* Threads by number or name, with + between, become a filter of the kernel's. */
static int parse_calls(struct trace_plan *plan, const char *threads, char *why, size_t room)
{
	size_t used = 0;

	while (*threads && used < sizeof(plan->calls_of)) {
		int length = (int)strcspn(threads, "+");
		bool number = (int)strspn(threads, "0123456789") == length;

		used += (size_t)snprintf(plan->calls_of + used, sizeof(plan->calls_of) - used, number ? "%scommon_pid == %.*s" : "%scomm == \"%.*s\"",
					 used ? " || " : "", length, threads);
		threads += length + (threads[length] == '+');
	}
	if (used && used < sizeof(plan->calls_of) && !strchr(plan->calls_of, '\\'))
		return 0;
	return text_refuse(why, room, -EINVAL, "calls_of of --trace takes a few threads by number or name, with + between");
}

static int parse_option(struct trace_plan *plan, const char *option, char *why, size_t room)
{
	if (!strncmp(option, "events=", 7) && option[7])
		return parse_events(plan, option + 7, why, room);
	if (!strncmp(option, "calls_of=", 9))
		return parse_calls(plan, option + 9, why, room);
	if (parse_word(plan, option) || parse_value(plan, option))
		return 0;
	return text_refuse(why, room, -EINVAL,
			    "--trace takes on, explain, events=NAME+.., buffer_kib=N, seed=N, turns=N, optional, stacks, calls_of=THREAD+.., "
			    "process=PID, whole, keep_mib=N, recorder, threshold=TIME, record_kib=N, top=N, ordinary=N (to %d); not '%.24s'",
			    WINDOWS_LIMIT, option);
}

static int parse(struct trace_plan *plan, const char *text, char *why, size_t room)
{
	char copy[TRACE_PATTERNS + 1024], *rest = NULL;
	int err = 0;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return text_refuse(why, room, -EINVAL, "--trace takes %d characters at most", (int)sizeof(copy) - 1);
	for (char *one = strtok_r(copy, ",", &rest); one && !err; one = strtok_r(NULL, ",", &rest))
		if (strcmp(text, "on"))
			err = parse_option(plan, one, why, room);
	return err;
}

/* The kernel's own size where that is given; else no more than a sixteenth of the memory there is. */
static int choose_buffer(struct trace_plan *plan, char *why, size_t room)
{
	int64_t there_kib = memory_room() / KIB / plan->cpus, most_kib = BUFFERS_MOST_KIB / plan->cpus;

	if (plan->buffer_kib > there_kib / 2)
		return text_refuse(why, room, -ENOMEM,
				    "a trace buffer of %lld KiB for each of %d CPUs is more than half of the memory there is",
				    (long long)plan->buffer_kib, plan->cpus);
	if (plan->buffer_kib)
		return 0;
	plan->buffer_kib = most_kib < BUFFER_MOST_KIB ? most_kib : BUFFER_MOST_KIB;
	if (plan->buffer_kib > there_kib / 16)
		plan->buffer_kib = there_kib / 16;
	if (plan->buffer_kib < BUFFER_LEAST_KIB)
		plan->buffer_kib = BUFFER_LEAST_KIB;
	return 0;
}

int trace_plan(struct trace_plan *plan, const char *asked, int64_t blocks_ns, char *why, size_t room)
{
	int err = marks_check(plan->marks, asked, why, room);

	if (!asked || err)
		return err;
	plan->asked = true;
	plan->blocks_ns = blocks_ns;
	use(plan, presets);
	plan->top = TOP_DEFAULT;
	plan->ordinary = ORDINARY_DEFAULT;
	plan->record_kib = RECORD_DEFAULT_KIB;
	plan->keep_mib = KEEP_DEFAULT_MIB;
	plan->cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	err = parse(plan, asked, why, room);

	if (!err && plan->whole && plan->recorder)
		return text_refuse(why, room, -EINVAL, "--trace takes recorder or whole, not both: one keeps some events, the other all");
	return err ? err : choose_buffer(plan, why, room);
}

static int64_t between(int64_t least, int64_t value, int64_t most)
{
	value = value > most ? most : value;
	return value < least ? least : value;
}

void trace_memory(const struct trace_plan *plan, int64_t *of_cpu, int64_t *held)
{
	int64_t there = memory_room() / 32;
	int64_t most = NEWEST_ALL_MOST / plan->cpus < NEWEST_MOST ? NEWEST_ALL_MOST / plan->cpus : NEWEST_MOST;

	*of_cpu = between(NEWEST_LEAST, there / plan->cpus, most);
	*held = between(HELD_LEAST, there, HELD_MOST);
}

int64_t trace_record_room(const struct trace_plan *plan)
{
	double hours = (double)plan->length_ns / (3600.0 * NS_PER_SECOND);

	return (int64_t)((hours > 1 ? hours : 1) * (double)(plan->record_kib * KIB));
}

double trace_space(const struct trace_plan *plan)
{
	if (!plan->asked)
		return 0;
	if (plan->whole) /* beside the record, and then in it */
		return 2.0 * (double)plan->keep_mib * KIB * KIB + TRACE_NAMES_MOST + (plan->stacks ? 2.0 * (double)plan->buffer_kib * KIB * plan->cpus : 0);
	double content = plan->recorder ? (double)trace_record_room(plan) : (double)plan->buffer_kib * KIB * plan->cpus;

	return content + TRACE_NAMES_MOST;
}

/* "sched_wakeup" or "sched:sched_wakeup", either with a star at the end; only its first characters count. */
static bool matches(const char *pattern, size_t characters, const char *event)
{
	const char *colon = strchr(event, ':'), *star = memchr(pattern, '*', characters);
	size_t length = star ? (size_t)(star - pattern) : characters;

	if (!colon)
		return false;
	event = memchr(pattern, ':', characters) ? event : colon + 1;
	return !strncmp(event, pattern, length) && (star || !event[length]);
}

static int add_event(struct trace_plan *plan, const char *event)
{
	int subsystem = (int)strcspn(event, ":");

	if (plan->n_events == TRACE_EVENTS)
		return -E2BIG;
	char *folder = plan->events[plan->n_events];

	snprintf(folder, sizeof(plan->events[0]), "%.*s/%s", subsystem, event, event + subsystem + 1);
	for (int i = 0; i < plan->n_events; i++)
		if (!strcmp(plan->events[i], folder))
			return 0;
	plan->n_events++;
	return 0;
}

/* How many events there are for a pattern; names have a zero behind each and one more behind the last. */
static int find_events(struct trace_plan *plan, const char *pattern, const char *names)
{
	int found = 0;

	for (const char *next = pattern; next && !found;) {
		size_t length = strcspn(next, "|");

		for (const char *name = names; *name; name += strlen(name) + 1) {
			if (!matches(next, length, name))
				continue;
			if (add_event(plan, name))
				return -E2BIG;
			found++;
		}
		next = next[length] ? next + length + 1 : NULL;
	}
	return found;
}

static void add_missing(struct trace_plan *plan, const char *pattern)
{
	size_t used = strlen(plan->missing);

	snprintf(plan->missing + used, sizeof(plan->missing) - used, " %s", pattern);
}

/*
 * Of the marks too, and what tells of whom a new thread is. A filter of a mark takes events away, so it must be on none that is
 * chosen already.
 */
static int add_marks(struct trace_plan *plan, const char *names, char *why, size_t room)
{
	char event[MARK_EVENT];

	if (plan->marks[0] || plan->whole)
		(void)find_events(plan, "sched:sched_process_fork", names);
	for (int i = 0; i < MARKS; i++) {
		int before = plan->n_events;

		marks_event(plan->marks, i, event);
		if (!*event)
			continue;
		if (find_events(plan, event, names) != 1)
			return text_refuse(why, room, -EINVAL, "this kernel has no event for the mark '%.200s'", plan->marks[i]);
		if (marks_filter(plan->marks[i]) && before == plan->n_events)
			return text_refuse(why, room, -EINVAL, "the mark '%.200s' can have no filter: its event is needed for more", plan->marks[i]);
	}
	return 0;
}

bool trace_is_of_calls(const char *folder)
{
	size_t subsystem = strcspn(folder, "/");

	for (size_t i = 0; i < sizeof(of_calls) / sizeof(*of_calls); i++)
		if (folder[subsystem] && strcspn(of_calls[i], ":") == subsystem && !strncmp(of_calls[i], folder, subsystem) &&
		    !strcmp(of_calls[i] + subsystem + 1, folder + subsystem + 1))
			return true;
	return faults_have(folder);
}

/* Whether an event of of_calls tells what another one tells better. */
static bool is_told_better(const struct trace_plan *plan, const char *event)
{
	if (event == counted)
		return plan->probes_faults;
	return event == faults_end && (plan->probes_faults || kernel_since(COUNTED_MAJOR, COUNTED_MINOR));
}

/* Without the ends of system calls nothing else is asked for: what a thread did between could not be told. */
static int add_calls(struct trace_plan *plan, const char *names)
{
	char probes[FAULTS_PATTERN];

	for (size_t i = 0; i < sizeof(of_calls) / sizeof(*of_calls) && *plan->calls_of; i++) {
		if (is_told_better(plan, of_calls[i]))
			continue;
		int found = find_events(plan, of_calls[i], names);

		if (found < 0)
			return found;
		if (!found)
			add_missing(plan, of_calls[i]);
		if (!found && of_calls[i] == calls_end)
			*plan->calls_of = '\0';
	}
	faults_pattern(probes);
	return plan->probes_faults && *plan->calls_of && find_events(plan, probes, names) < 0 ? -E2BIG : 0;
}

static bool has_event(const struct trace_plan *plan, const char *folder)
{
	for (int i = 0; i < plan->n_events; i++)
		if (!strcmp(plan->events[i], folder))
			return true;
	return false;
}

static void drop_event(struct trace_plan *plan, const char *folder)
{
	int left = 0;

	for (int i = 0; i < plan->n_events; i++)
		if (strcmp(plan->events[i], folder) != 0)
			memmove(plan->events[left++], plan->events[i], sizeof(plan->events[0]));
	plan->n_events = left;
}

/*
 * Each event on the way of the measured thread costs it 0.6 us in virtual time, so of two that tell the same one goes. The end of a
 * timer's function is that of its interrupt, or the begin of the next function. The begin of a timer's interrupt is 0.25 us before
 * that of its first function; a stack is of the former.
 */
static void drop_doubles(struct trace_plan *plan)
{
	bool by_handler = plan->timer == TIMER_OF_HANDLER && has_event(plan, "irq/irq_handler_exit");
	bool by_vector = plan->timer == TIMER_OF_VECTOR && has_event(plan, "irq_vectors/local_timer_exit");

	if (!plan->explains || !has_event(plan, "timer/hrtimer_expire_entry"))
		return;
	if (by_handler || by_vector)
		drop_event(plan, "timer/hrtimer_expire_exit");
	if (by_vector && !plan->stacks)
		drop_event(plan, "irq_vectors/local_timer_entry");
}

static int add_sleeps(struct trace_plan *plan, const char *names)
{
	bool needed = plan->explains && !plan->ends_with_sleep && !*plan->calls_of;

	for (size_t i = 0; i < sizeof(of_sleeps) / sizeof(*of_sleeps) && needed; i++) {
		int found = find_events(plan, of_sleeps[i], names);

		if (found < 0)
			return found;
		if (!found)
			add_missing(plan, of_sleeps[i]);
	}
	return 0;
}

int trace_choose(struct trace_plan *plan, const char *names, char *why, size_t room)
{
	char copy[TRACE_PATTERNS], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", plan->patterns);
	for (char *one = strtok_r(copy, "+", &rest); one; one = strtok_r(NULL, "+", &rest)) {
		int found = find_events(plan, one, names);

		if (found < 0)
			return text_refuse(why, room, found, "--trace takes %d events at most; '%.80s' makes them more", TRACE_EVENTS, one);
		if (!found && plan->given)
			return text_refuse(why, room, -EINVAL, "this kernel has no event '%.80s' to trace", one);
		if (!found)
			add_missing(plan, one);
	}
	if (add_calls(plan, names) || add_sleeps(plan, names))
		return text_refuse(why, room, -E2BIG, "--trace takes %d events at most; those of system calls make them more", TRACE_EVENTS);
	drop_doubles(plan);
	if (!plan->n_events)
		return text_refuse(why, room, -EINVAL, "this kernel has none of the events to trace");
	return add_marks(plan, names, why, room);
}

bool trace_is_on_in(const struct trace_plan *plan, int64_t block)
{
	uint32_t mixed = (uint32_t)plan->seed + (uint32_t)(block / 4) * 0x9e3779b9u;
	bool inner = block % 4 == 1 || block % 4 == 2;

	if (plan->turns && block >= plan->turns)
		return true;
	mixed = (mixed ^ mixed >> 16) * 0x7feb352du;
	mixed = (mixed ^ mixed >> 15) * 0x846ca68bu;
	return inner == (mixed >> 31);
}
