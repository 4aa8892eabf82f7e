/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/marks.h"

#include "system/text.h"
#include "trace/tracefs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define WRITTEN "marker:"
#define REACHED "uprobe:"
#define LEFT "uretprobe:"
#define EVENT "event:"

static const char *const names[MARKS] = { "begin", "end" };

/* What stands behind the kind; NULL if the mark is of another one. */
static const char *behind(const char *mark, const char *kind)
{
	size_t length = strlen(kind);

	return mark && !strncmp(mark, kind, length) && mark[length] ? mark + length : NULL;
}

/* The file and the offset of an uprobe; NULL for another mark. */
static const char *place_of(const char *mark)
{
	const char *place = behind(mark, REACHED);

	return place ? place : behind(mark, LEFT);
}

void marks_event(const char *const marks[MARKS], int which, char event[MARK_EVENT])
{
	const char *told = behind(marks[which], EVENT), *slash = told ? strchr(told, '/') : NULL;

	*event = '\0';
	if (place_of(marks[which]))
		snprintf(event, MARK_EVENT, TRACEFS_EVENTS "%s:%s", tracefs_owner(), names[which]);
	else if (slash)
		snprintf(event, MARK_EVENT, "%.*s:%.*s", (int)(slash - told), told, (int)strcspn(slash + 1, ":"), slash + 1);
}

const char *marks_filter(const char *mark)
{
	const char *told = behind(mark, EVENT), *colon = told ? strchr(told, ':') : NULL;

	return colon ? colon + 1 : NULL;
}

bool marks_are_written(const char *const marks[MARKS])
{
	return behind(marks[0], WRITTEN) || behind(marks[1], WRITTEN);
}

static bool is_mark(const char *mark)
{
	const char *place = place_of(mark), *event = behind(mark, EVENT);

	for (const char *letter = mark; *letter; letter++)
		if (iscntrl((unsigned char)*letter)) /* the kernel takes a line for a definition of its own */
			return false;
	return behind(mark, WRITTEN) || (place && *place == '/' && strchr(place, ':')) || (event && strchr(event, '/'));
}

int marks_check(const char *const marks[MARKS], bool traced, char *why, size_t room)
{
	if (!marks[0] && !marks[1])
		return 0;
	if (!marks[0] || !marks[1] || !traced)
		return text_refuse(why, room, -EINVAL, "--begin, --end and --trace go together");
	for (int i = 0; i < MARKS; i++)
		if (!is_mark(marks[i]))
			return text_refuse(why, room, -EINVAL,
					   "--%s takes marker:TEXT, uprobe:/FILE:OFFSET, uretprobe:/FILE:OFFSET or event:SYSTEM/NAME[:FILTER], not '%.80s'",
					   names[i], marks[i]);
	return 0;
}

int marks_define(struct undo *undo, const char *root, const char *const marks[MARKS], char *why, size_t room)
{
	char path[TRACEFS_PATH + 32];
	int err = 0;

	snprintf(path, sizeof(path), "%s/uprobe_events", root);
	for (int i = 0; i < MARKS && !err; i++) {
		const char *place = place_of(marks[i]);

		if (!place)
			continue;
		if (access(path, F_OK) < 0)
			return text_refuse(why, room, -ENOTSUP, "this kernel has no uprobes (CONFIG_UPROBE_EVENTS), so a function can be no mark");
		err = tracefs_define(undo, path, behind(marks[i], LEFT) ? "r" : "p", place, names[i]);
		if (err)
			text_refuse(why, room, err, "the kernel takes no uprobe at '%.200s': %s", place, strerror(-err));
	}
	return err;
}
