/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/process_groups.h"

#include "collect/lines.h"
#include "system/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOLDER_MOST = 1024, GROUPS_MOST = 64, TEXT_MOST = 65536 };

static const char *const files[] = {
	"cpu.max", "cpu.stat", "cpu.weight", "cpuset.cpus.effective", "cpuset.cpus.partition", /* version 2 */
	"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.rt_runtime_us", "cpu.rt_period_us", "cpuset.effective_cpus", "cpuset.cpus",
};

static void put_throttled(struct bytes *text, const char *path)
{
	char content[2048];
	int length = text_read_file(path, content, sizeof(content) - 1);

	content[length < 0 ? 0 : length] = '\0';
	const char *count = strstr(content, "nr_throttled ");

	if (count)
		put_format(text, "%s %lld\n", path, strtoll(count + strlen("nr_throttled "), NULL, 10));
}

static void put_folder(struct bytes *text, const char *folder)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char path[FOLDER_MOST + 64], value[256];

		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		if (!strcmp(files[i], "cpu.stat"))
			put_throttled(text, path);
		else if (!text_read_line(path, value, sizeof(value)))
			put_format(text, "%s %s\n", path, value);
	}
}

static void put_up_to_root(struct bytes *text, const char *place, const char *group)
{
	char folder[FOLDER_MOST], path[FOLDER_MOST];

	if ((size_t)snprintf(path, sizeof(path), "%s", group) >= sizeof(path))
		return;
	for (;;) {
		if ((size_t)snprintf(folder, sizeof(folder), "%s%s", place, strcmp(path, "/") ? path : "") < sizeof(folder))
			put_folder(text, folder);
		char *end = strrchr(path, '/');

		if (!end || !end[1])
			return;
		end[end == path] = '\0'; /* "/a" is in "/" */
	}
}

/* Whether a list with commas between has one of the words of another such list. */
static bool share_word(const char *list, const char *other)
{
	size_t length;

	for (; *list; list += length + (list[length] == ',')) {
		length = strcspn(list, ",");
		for (const char *at = other; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
			if (length && !strncmp(at, list, length) && (at[length] == ',' || !at[length]))
				return true;
	}
	return false;
}

/* The path of the group in the hierarchy that is mounted, of lines "NUMBER:CONTROLLERS:PATH"; NULL: it is in none. */
static const char *group_in(char *const *groups, int n, bool version_2, const char *options)
{
	for (int i = 0; i < n; i++) {
		char controllers[128];
		const char *list = strchr(groups[i], ':'), *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		snprintf(controllers, sizeof(controllers), "%.*s", (int)(path - list - 1), list + 1);
		if (version_2 ? !*controllers : share_word(controllers, options))
			return path + 1;
	}
	return NULL;
}

int put_groups(struct bytes *text, char *mounts, char *groups)
{
	char *lines[GROUPS_MOST], *line, *words;
	int n = 0;

	while (n < GROUPS_MOST && (line = next_line(&groups)))
		lines[n++] = line;
	while ((line = next_line(&mounts))) {
		strtok_r(line, " ", &words);
		const char *place = strtok_r(NULL, " ", &words), *type = strtok_r(NULL, " ", &words);
		const char *options = strtok_r(NULL, " ", &words);

		if (!options || strncmp(type, "cgroup", 6) != 0)
			continue;
		const char *group = group_in(lines, n, !strcmp(type, "cgroup2"), options);

		if (group)
			put_up_to_root(text, place, group);
	}
	return text->length ? 0 : -ENOENT;
}

int collect_process_groups(struct bytes *text, int pid)
{
	struct bytes mounts = { NULL, 0, 0, false }, groups = { NULL, 0, 0, false };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	int err = put_file(&groups, path, TEXT_MOST);

	if (err >= 0)
		err = put_file(&mounts, "/proc/self/mounts", TEXT_MOST);
	if (err >= 0)
		err = put_groups(text, (char *)mounts.data, (char *)groups.data);
	bytes_free(&mounts);
	bytes_free(&groups);
	return err;
}
