/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "facts/rt_budget.h"

#include "system/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 65536, PLACE_MOST = 1024, CPUS_ASKED = 1024 };

static const char runtime_name[] = "cpu.rt_runtime_us", period_name[] = "cpu.rt_period_us";

/* Whether a list with commas between has the word cpu. */
static bool has_cpu(const char *list)
{
	for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
		if (!strncmp(at, "cpu", 3) && (!at[3] || at[3] == ','))
			return true;
	return false;
}

/* Where the controller is mounted: "cgroup PLACE cgroup OPTIONS 0 0". */
static const char *find_mount(char *mounts)
{
	char *rest = NULL, *words;

	for (char *line = strtok_r(mounts, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		strtok_r(line, " ", &words);
		const char *place = strtok_r(NULL, " ", &words), *type = strtok_r(NULL, " ", &words);
		const char *options = strtok_r(NULL, " ", &words);

		if (options && !strcmp(type, "cgroup") && has_cpu(options))
			return place;
	}
	return NULL;
}

/* The own group: "NUMBER:CONTROLLERS:PATH". */
static char *find_group(char *groups)
{
	char *rest = NULL;

	for (char *line = strtok_r(groups, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		*path = '\0';
		if (has_cpu(list + 1))
			return path + 1;
	}
	return NULL;
}

static bool put_budget(struct bytes *lines, const char *folder)
{
	char path[PLACE_MOST + 96], runtime[32], period[32];

	snprintf(path, sizeof(path), "%s/%s", folder, runtime_name);
	if (text_read_line(path, runtime, sizeof(runtime)) < 0)
		return false;
	snprintf(path, sizeof(path), "%s/%s", folder, period_name);
	if (text_read_line(path, period, sizeof(period)) < 0)
		snprintf(period, sizeof(period), "-");
	snprintf(path, sizeof(path), "%s %s %s\n", folder, runtime, period);
	put_bytes(lines, path, strlen(path));
	return true;
}

int rt_budget_groups(char *mounts, char *groups, struct bytes *lines)
{
	const char *place = find_mount(mounts);
	char *group = find_group(groups), *end;
	char folder[PLACE_MOST];
	bool found = false;

	if (!place || !group)
		return -ENOENT;
	for (;;) {
		snprintf(folder, sizeof(folder), "%s%s", place, strcmp(group, "/") ? group : "");
		found |= put_budget(lines, folder);
		end = strrchr(group, '/');
		if (!end || !end[1])
			return found ? 0 : -ENOENT;
		end[end == group] = '\0'; /* "/a" is in "/" */
	}
}

int rt_budget_own(struct bytes *lines)
{
	char *mounts = calloc(2, TEXT_MOST);

	if (!mounts)
		return -ENOMEM;
	char *groups = mounts + TEXT_MOST;
	bool read = text_read_file("/proc/self/mounts", mounts, TEXT_MOST - 1) > 0 &&
		    text_read_file("/proc/self/cgroup", groups, TEXT_MOST - 1) > 0;
	int err = read ? rt_budget_groups(mounts, groups, lines) : -ENOENT;

	free(mounts);
	return err;
}

int rt_budget_fair_server(struct bytes *lines)
{
	int err = -ENOENT;

	for (int cpu = 0; cpu < CPUS_ASKED; cpu++) {
		char path[128], runtime[32], period[32], line[128];

		snprintf(path, sizeof(path), "/sys/kernel/debug/sched/fair_server/cpu%d/runtime", cpu);
		if (text_read_line(path, runtime, sizeof(runtime)) < 0)
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/debug/sched/fair_server/cpu%d/period", cpu);
		if (text_read_line(path, period, sizeof(period)) < 0)
			continue;
		int n = snprintf(line, sizeof(line), "cpu%d %s %s\n", cpu, runtime, period);

		put_bytes(lines, line, (size_t)n);
		err = 0;
	}
	return err;
}

void rt_budget_explain(char *why, size_t room)
{
	struct bytes lines = { 0 };
	char *rest = NULL;

	why[0] = '\0';
	int err = rt_budget_own(&lines);

	put_u8(&lines, 0);
	if (!err && !lines.failed) {
		char *folder = strtok_r((char *)lines.data, " ", &rest), *runtime = strtok_r(NULL, " ", &rest);

		if (runtime && !strcmp(runtime, "0"))
			snprintf(why, room, "the control group has no budget for real-time threads: %s/%s is 0", folder, runtime_name);
	}
	bytes_free(&lines);
}
