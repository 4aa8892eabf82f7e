/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/waits.h"

#include "system/clock.h"
#include "system/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { MAPS_MOST = 60 * 1024, FILE_MOST = 512 };

/* A thread that was preempted has a bit above these. */
#define SLEEPS "prev_state & 255 && (%s)"

static int put(const struct waits *waits, const char *file, const char *value)
{
	char path[TRACEFS_PATH + 128];

	snprintf(path, sizeof(path), "%s/%s", waits->place, file);
	return text_write_file(path, value);
}

static int set_up(struct waits *waits, const struct trace_plan *plan)
{
	char filter[600], size[24];

	snprintf(filter, sizeof(filter), SLEEPS, plan->calls_of);
	snprintf(size, sizeof(size), "%lld", (long long)(2 * plan->buffer_kib));
	const char *const steps[][2] = {
		{ "trace_clock", "mono" },
		{ "buffer_size_kb", size },
		{ "options/userstacktrace", "1" },
		{ "events/sched/sched_switch/filter", filter },
		{ "events/sched/sched_switch/enable", "1" },
		{ "events/" WAITS_EXEC "/enable", "1" },
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && !err; i++)
		err = put(waits, steps[i][0], steps[i][1]);
	return err;
}

void waits_open(struct waits *waits, struct undo *undo, const char *root, const struct trace_plan *plan)
{
	char path[TRACEFS_PATH + 16];

	waits->hold = -1;
	snprintf(waits->told, sizeof(waits->told), "not asked for");
	if (!plan->stacks || !*plan->calls_of)
		return;
	tracefs_name_instance(root, waits->place);
	int err = undo_mkdir(undo, waits->place);

	if (!err) {
		snprintf(path, sizeof(path), "%s/tracing_on", waits->place);
		waits->hold = open(path, O_RDONLY | O_CLOEXEC);
		err = set_up(waits, plan);
	}
	waits->on = !err;
	if (err)
		snprintf(waits->told, sizeof(waits->told), "none: %s", strerror(-err));
	else
		snprintf(waits->told, sizeof(waits->told), "of the program");
}

/* "7f01-7f02 r-xp 00001000 fe:00 1234   /usr/bin/myapp", and "[vdso]" for what the kernel adds: code with a name. */
static bool is_code(const char *line)
{
	const char *rights = strchr(line, ' ');

	return rights && strnlen(rights, 4) == 4 && rights[3] == 'x' && strpbrk(line, "/[");
}

/* A file is read from its disk by a page fault in any part of it; its code is told of in any case. */
static bool is_another_file(const char *line, const char *before)
{
	const char *file = strchr(line, '/');

	return file && strncmp(file, before, FILE_MOST - 1) != 0;
}

void waits_look(struct waits *waits, int64_t process)
{
	struct bytes maps = { NULL, 0, 0, false };
	char path[40], line[4400], before[FILE_MOST] = "";

	if (!process)
		return;
	snprintf(path, sizeof(path), "/proc/%lld/maps", (long long)process);
	FILE *file = fopen(path, "re");
	const size_t head = (size_t)snprintf(line, sizeof(line), "process %lld %lld\n", (long long)process, (long long)clock_now_ns());

	put_bytes(&maps, line, head);
	while (file && maps.length < MAPS_MOST && fgets(line, sizeof(line), file))
		if (is_code(line) || is_another_file(line, before)) {
			put_bytes(&maps, line, strlen(line));
			snprintf(before, sizeof(before), "%s", strchr(line, '/') ? strchr(line, '/') : "");
		}
	if (file)
		fclose(file);
	if (maps.length == head || maps.failed) {
		bytes_free(&maps);
		return;
	}
	bytes_free(&waits->maps);
	waits->maps = maps;
}

void waits_close(struct waits *waits)
{
	if (*waits->place && waits->hold >= 0) /* without a place nothing was opened: the trace was refused before */
		close(waits->hold);
	waits->hold = -1;
	bytes_free(&waits->maps);
}
