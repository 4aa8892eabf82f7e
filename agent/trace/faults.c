/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/faults.h"

#include "trace/tracefs.h"

#include <stdio.h>
#include <string.h>

#define HANDLER "handle_mm_fault"
#define BEGIN_EVENT "events/exceptions/page_fault_user"
#define KIND "/fault_"

/* So many threads may be in a page fault at once: a thread may sleep there. Before Linux 4.14 the kernel chooses the number. */
static const char *const ends[] = { "r100", "r" };

static bool ends_are_defined(struct undo *undo, const char *path)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (!tracefs_define(undo, path, ends[i], HANDLER, "fault_end"))
			return true;
	return false;
}

bool faults_define(struct undo *undo, const char *root)
{
	char path[TRACEFS_PATH + 64];

	snprintf(path, sizeof(path), "%s/" BEGIN_EVENT, root);
	bool begins = !access(path, F_OK);

	snprintf(path, sizeof(path), "%s/kprobe_events", root);
	if (access(path, F_OK) < 0)
		return false;
	return (begins || !tracefs_define(undo, path, "p", HANDLER, "fault_begin")) && ends_are_defined(undo, path);
}

void faults_pattern(char pattern[FAULTS_PATTERN])
{
	snprintf(pattern, FAULTS_PATTERN, TRACEFS_EVENTS "%s:%s*", tracefs_owner(), KIND + 1);
}

bool faults_have(const char *folder)
{
	const char *slash = strchr(folder, '/');

	return slash && !strncmp(folder, TRACEFS_EVENTS, strlen(TRACEFS_EVENTS)) && !strncmp(slash, KIND, strlen(KIND));
}
