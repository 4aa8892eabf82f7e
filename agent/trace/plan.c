/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/plan.h"

#include "system/folder.h"
#include "system/text.h"

#include <stdio.h>
#include <string.h>

enum {
	KIB = 1024,
	BUFFER_MOST_KIB = 1024,       /* of a CPU, where the user says nothing */
	BUFFERS_MOST_KIB = 64 * 1024, /* of all together, " */
	BUFFER_LEAST_KIB = 16,
	BUFFER_LIMIT_KIB = 16 * 1024 * 1024,
};

/* What article 3 recorded, and the switches between threads. A star stands for any ending; 32-bit systems have others. */
static const char presets[] = "sched_wakeup+sched_wakeup_new+sched_waking+sched_switch+sys_enter_clock_nanosleep*+"
			      "sys_exit_clock_nanosleep*+sys_enter_nanosleep*+sys_exit_nanosleep*+spi_*+irq_handler_*";

static int parse_option(struct trace_plan *plan, const char *option, char *why, size_t room)
{
	if (!strncmp(option, "events=", 7) && option[7] && strlen(option) < sizeof(plan->patterns)) {
		snprintf(plan->patterns, sizeof(plan->patterns), "%s", option + 7);
		plan->given = true;
		return 0;
	}
	if (!strncmp(option, "buffer_kib=", 11) && !text_number(option + 11, 4, BUFFER_LIMIT_KIB, &plan->buffer_kib))
		return 0;
	if (!strncmp(option, "seed=", 5) && !text_number(option + 5, 0, UINT32_MAX, &plan->seed))
		return 0;
	return text_refuse(why, room, -EINVAL,
			    "--trace takes on, or events=NAME+NAME.., buffer_kib=N (4 to %d) and seed=N with commas between; not '%s'",
			    BUFFER_LIMIT_KIB, option);
}

static int parse(struct trace_plan *plan, const char *text, char *why, size_t room)
{
	char copy[1024], *rest = NULL;
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
	if (!asked)
		return 0;
	plan->asked = true;
	plan->blocks_ns = blocks_ns;
	snprintf(plan->patterns, sizeof(plan->patterns), "%s", presets);
	plan->cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	int err = parse(plan, asked, why, room);

	return err ? err : choose_buffer(plan, why, room);
}

double trace_space(const struct trace_plan *plan)
{
	return (double)plan->buffer_kib * KIB * plan->cpus * (1 + TRACE_TEXT_FACTOR);
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

	for (; *names; names += strlen(names) + 1) {
		if (!matches(pattern, names))
			continue;
		if (add_event(plan, names))
			return -E2BIG;
		found++;
	}
	return found;
}

int trace_choose(struct trace_plan *plan, const char *names, char *why, size_t room)
{
	char copy[sizeof(plan->patterns)], *rest = NULL;
	size_t used = 0;

	snprintf(copy, sizeof(copy), "%s", plan->patterns);
	for (char *one = strtok_r(copy, "+", &rest); one; one = strtok_r(NULL, "+", &rest)) {
		int found = find_events(plan, one, names);

		if (found < 0)
			return text_refuse(why, room, found, "--trace takes %d events at most; '%s' makes them more", TRACE_EVENTS, one);
		if (!found && plan->given)
			return text_refuse(why, room, -EINVAL, "this kernel has no event '%s' to trace", one);
		if (!found)
			used += (size_t)snprintf(plan->missing + used, sizeof(plan->missing) - used, " %s", one);
	}
	return plan->n_events ? 0 : text_refuse(why, room, -EINVAL, "this kernel has none of the events to trace");
}

bool trace_is_on_in(const struct trace_plan *plan, int64_t block)
{
	uint32_t mixed = (uint32_t)plan->seed + (uint32_t)(block / 4) * 0x9e3779b9u;
	bool inner = block % 4 == 1 || block % 4 == 2;

	mixed = (mixed ^ mixed >> 16) * 0x7feb352du;
	mixed = (mixed ^ mixed >> 15) * 0x846ca68bu;
	return inner == (mixed >> 31);
}
