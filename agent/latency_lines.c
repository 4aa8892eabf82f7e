/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "latency_lines.h"

#include <stdio.h>
#include <string.h>

static const char *const contexts[] = { "irq", "thread", "user-ret" };

/* The event is what stands behind the last ": #": names of tasks, which come before, may have anything in them. */
static const char *event_of(const char *text)
{
	const char *event = NULL;

	for (const char *at = strstr(text, ": #"); at; at = strstr(at + 1, ": #"))
		event = at;
	return event;
}

static int context_of(const char *name)
{
	for (int i = 0; i < 3; i++)
		if (!strcmp(contexts[i], name))
			return i;
	return -1;
}

/* "4.145437", which ends at end. -1 if it is no such time. */
static int64_t stamp_before(const char *text, const char *end)
{
	const char *begin = end;
	unsigned long long seconds, microseconds;
	int length = 0;

	while (begin > text && begin[-1] != ' ')
		begin--;
	if (sscanf(begin, "%9llu.%6llu%n", &seconds, &microseconds, &length) != 2 || begin + length != end)
		return -1;
	return (int64_t)seconds * NS_PER_SECOND + (int64_t)microseconds * 1000;
}

bool latency_line_parse(const char *text, struct latency_line *line)
{
	const char *event = event_of(text);
	unsigned long long id, latency_ns;
	char context[16], unit[4];

	if (!event || sscanf(event, ": #%10llu context %15s timer_latency %19llu %3s", &id, context, &latency_ns, unit) != 4)
		return false;
	line->id = (uint32_t)id;
	line->context = context_of(context);
	line->latency_ns = (int64_t)latency_ns;
	line->time_ns = stamp_before(text, event);
	return id <= UINT32_MAX && line->context >= 0 && line->time_ns >= 0 && latency_ns < INT64_MAX && !strcmp(unit, "ns");
}

static void begin(struct latency_track *track, const struct latency_line *line)
{
	track->id = line->id;
	track->reading = (struct activation){ .due_ns = line->time_ns - line->latency_ns };
}

static bool is_next(const struct latency_track *track, const struct latency_line *line)
{
	return line->id == track->id && line->context == track->seen && track->seen < track->fields;
}

static uint32_t limited(int64_t number)
{
	return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/*
 * Puts the activation that is whole in the place of the one held, which comes out. Between them lie due times that were missed,
 * or, where the numbers say that activations are not there, whose fate is unknown.
 */
static bool exchange(struct latency_track *track, struct activation *out)
{
	struct activation *now = &track->reading;
	int64_t leap = (now->due_ns - track->held.due_ns + track->period_ns / 2) / track->period_ns;
	int64_t due_ns = track->held.due_ns + leap * track->period_ns;

	if (leap < 1) /* a clock that goes back */
		return false;
	if (due_ns < now->due_ns)
		now->due_ns = due_ns;
	if (track->id == track->held_id + 1)
		track->held.missed = limited(leap - 1);
	else
		now->lost = limited(leap - 1);
	*out = track->held;
	return true;
}

bool latency_track_add(struct latency_track *track, const struct latency_line *line, struct activation *activation)
{
	bool had = track->holds, out = false;

	if (line->context == 0) {
		track->seen = 0;
		begin(track, line);
	}
	if (!is_next(track, line))
		return false;
	track->reading.values[track->seen++] = line->latency_ns;
	if (track->seen < track->fields)
		return false;
	if (had)
		out = exchange(track, activation);
	if (had && !out)
		return false;
	track->held = track->reading;
	track->held_id = track->id;
	track->holds = true;
	return out;
}

bool latency_track_flush(struct latency_track *track, struct activation *activation)
{
	bool had = track->holds;

	if (had)
		*activation = track->held;
	track->holds = false;
	return had;
}
