/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/stacks.h"

#include "system/text.h"
#include "trace/tracefs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/*
 * Only an interrupt that hits a task: with preemption off (the low half of the count), with softirqs off (128), in a softirq (16),
 * or where the task shall leave the CPU and does not (4).
 */
#define IN_SECTION "stacktrace if common_pid != 0 && (common_preempt_count & 15 || common_flags & 148)"

bool kernel_since(long since_major, long since_minor)
{
	struct utsname name;
	char *rest;

	if (uname(&name) < 0)
		return false;
	long major = strtol(name.release, &rest, 10), minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;

	return major > since_major || (major == since_major && minor >= since_minor);
}

/* Adds a trigger to an event of the instance, or an event to the synthetic ones; "!" and the same takes it back. */
static int add(struct undo *undo, const char *folder, const char *file, const char *value)
{
	char path[TRACEFS_PATH + 128], back[256];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	snprintf(back, sizeof(back), "!%s", value);
	return undo_append(undo, path, value, back);
}

static int set_for_sections(struct undo *undo, const char *instance)
{
	int err = add(undo, instance, "events/irq_vectors/local_timer_entry/trigger", IN_SECTION);

	return err ? add(undo, instance, "events/irq/irq_handler_entry/trigger", IN_SECTION) : 0;
}

/*
 * A synthetic event with the time from a timer's due time to its interrupt: both are known by the timer's address. Its stack shows
 * who let interrupts in again.
 */
static int set_for_late_timers(struct undo *undo, const char *root, const char *instance, int64_t late_ns)
{
	char name[64], event[96], late[200], limit[64], file[100];

	snprintf(name, sizeof(name), TRACEFS_EVENTS "%s", tracefs_owner());
	snprintf(event, sizeof(event), "%s s64 late_ns", name);
	snprintf(late, sizeof(late), "hist:keys=hrtimer:late=now-$due:onmatch(timer.hrtimer_start).%s($late)", name);
	snprintf(limit, sizeof(limit), "stacktrace if late_ns > %lld", (long long)late_ns);
	snprintf(file, sizeof(file), "events/synthetic/%s/trigger", name);
	int err = add(undo, root, "synthetic_events", event);

	if (!err)
		err = add(undo, instance, "events/timer/hrtimer_start/trigger", "hist:keys=hrtimer:due=softexpires");
	if (!err)
		err = add(undo, instance, "events/timer/hrtimer_expire_entry/trigger", late);
	return err ? err : add(undo, instance, file, limit);
}

int stacks_set(struct undo *undo, const char *root, const char *instance, int64_t late_ns, char *told, size_t room)
{
	if (!kernel_since(STACKS_MAJOR, STACKS_MINOR)) {
		snprintf(told, room, "none: they need Linux %d.%d", STACKS_MAJOR, STACKS_MINOR);
		return -ENOTSUP;
	}
	int sections = set_for_sections(undo, instance), timers = set_for_late_timers(undo, root, instance, late_ns);

	if (sections && timers)
		snprintf(told, room, "none: %s", strerror(-sections));
	else
		snprintf(told, room, "%s%s%s", sections ? "" : "sections", sections || timers ? "" : " ", timers ? "" : "late-timers");
	return sections && timers ? sections : 0;
}
