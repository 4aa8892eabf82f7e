/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "facts/kinds.h"

#include "collect/paths.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { EVL_MOST = 64 };

/* What may change while measuring is read at both ends. All else is collected before the run. */
static void write_files(struct run *run, enum moment moment)
{
	for (const struct audit_path *path = run_paths; path->pattern; path++)
		record_file(&run->record, run_time_ns(run), moment, path->pattern);
}

/* Each has how often it left the co-kernel EVL for Linux, and its priority there. */
static void write_evl_threads(struct run *run, enum moment moment)
{
	static const char place[] = "/sys/devices/virtual/thread";
	DIR *folder = opendir(place);
	struct dirent *entry;
	char path[320];

	for (int i = 0; folder && i < EVL_MOST && (entry = readdir(folder)); i++) {
		static const char *const files[] = { "stats", "sched" };

		for (int j = 0; j < 2 && entry->d_name[0] != '.'; j++) {
			snprintf(path, sizeof(path), "%s/%s/%s", place, entry->d_name, files[j]);
			record_file(&run->record, run_time_ns(run), moment, path);
		}
	}
	if (folder)
		closedir(folder);
}

void facts_rt_threads(struct facts *facts, enum moment moment)
{
	struct run *run = facts->run;
	struct bytes lines = { NULL, 0, 0, false };

	if (moment == MOMENT_START) { /* looked at before the warm-up: it takes time */
		lines = facts->rt_at_start;
		memset(&facts->rt_at_start, 0, sizeof(facts->rt_at_start));
	}
	if (moment == MOMENT_DURING)
		rt_threads_each_second(&facts->rt_threads, &lines);
	else if (moment == MOMENT_END)
		rt_threads_collect(&facts->rt_threads, true, &lines);
	if (moment != MOMENT_DURING || lines.length)
		record_content(&run->record, run_time_ns(run), moment, "rt-threads", 0, (const char *)lines.data, lines.length);
	bytes_free(&lines);
}

static void write_system(struct facts *facts)
{
	for (int i = 0; i < SYSTEM_PARTS; i++) {
		const struct system_part *part = &facts->system[i];

		record_content(&facts->run->record, run_time_ns(facts->run), MOMENT_START, part->path, part->err,
			       (const char *)part->content.data, part->content.length);
	}
}

void facts_files_at_start(struct facts *facts)
{
	struct run *run = facts->run;

	write_system(facts);
	write_files(run, MOMENT_START);
	write_evl_threads(run, MOMENT_START);
	facts_rt_threads(facts, MOMENT_START);
}

void facts_files_at_end(struct facts *facts)
{
	struct run *run = facts->run;

	write_files(run, MOMENT_END);
	write_evl_threads(run, MOMENT_END);
	facts_rt_threads(facts, MOMENT_END);
}
