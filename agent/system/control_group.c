/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/control_group.h"

#include "system/text.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = 4096 };

/* Where every system has them, and where systemd has them beside those of v1. */
static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

int control_group_find(char path[CONTROL_GROUP_PATH], size_t *root_length)
{
	char groups[TEXT], procs[CONTROL_GROUP_PATH + 16];
	int n = text_read_file("/proc/self/cgroup", groups, TEXT - 1);

	groups[n > 0 ? n : 0] = '\0';
	char *own = strstr(groups, "0::/");

	if (!own)
		return -ENOENT;
	own[strcspn(own, "\n")] = '\0';
	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
		*root_length = strlen(roots[i]);
		if (snprintf(path, CONTROL_GROUP_PATH, "%s%s", roots[i], own + 3) >= CONTROL_GROUP_PATH)
			return -ENAMETOOLONG;
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
		if (access(procs, F_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

void control_group_leave(pid_t pid)
{
	char path[CONTROL_GROUP_PATH], procs[CONTROL_GROUP_PATH + 16], text[16];
	size_t length;
	int err = control_group_find(path, &length);
	const char *last = err ? NULL : strrchr(path, '/'); /* what follows is the own group */

	snprintf(text, sizeof(text), "%d", (int)pid);
	while (!err && last[1] && path + length <= last) {
		snprintf(procs, sizeof(procs), "%.*s/cgroup.procs", (int)length, path);
		if (text_write_file(procs, text) == 0)
			return;
		length += 1 + strcspn(path + length + 1, "/");
	}
}
