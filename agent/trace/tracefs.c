/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/tracefs.h"

#include "system/processes.h"
#include "system/text.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

/* Before Linux 4.1 it was a part of debugfs. */
static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing", NULL };

static char own[TRACEFS_PATH];

enum { NAMES_TRIED = 100 };

const char *tracefs_owner(void)
{
	static char owner[32];
	struct process self = { .pid = getpid() };

	if (!*owner) {
		processes_self(&self);
		snprintf(owner, sizeof(owner), "%d_%lld", (int)self.pid, (long long)self.started);
	}
	return owner;
}

void tracefs_name_instance(const char *root, char path[TRACEFS_PATH])
{
	int length = snprintf(path, TRACEFS_PATH, "%s/instances/" TRACEFS_OURS "%s-trace", root, tracefs_owner());

	for (int i = 2; i < NAMES_TRIED && !access(path, F_OK); i++)
		snprintf(path + length, (size_t)(TRACEFS_PATH - length), "-%d", i);
}

void tracefs_take(const char *path)
{
	snprintf(own, sizeof(own), "%s", path ? path : "");
}

const char *tracefs_own(void)
{
	return own;
}

int tracefs_read(const char *folder, const char *file, char text[TRACEFS_TEXT])
{
	char path[TRACEFS_PATH + 300];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	int length = text_read_file(path, text, TRACEFS_TEXT - 1);

	text[length < 0 ? 0 : length] = '\0';
	return length < 0 ? length : 0;
}

int tracefs_find(const char **root)
{
	char tracers[TRACEFS_TEXT];
	int err = -ENOENT;

	for (const char *const *place = places; *place && err == -ENOENT; place++) {
		*root = *place;
		err = tracefs_read(*place, "available_tracers", tracers);
	}
	return err;
}

/* Mounts made from here on are this process's and its children's; those of others are still seen. */
static int leave_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return -errno;
	return 0;
}

int tracefs_reach(const char **root)
{
	char tracers[TRACEFS_TEXT];

	*root = places[0];
	int err = tracefs_read(*root, "available_tracers", tracers);

	if (err != -ENOENT)
		return err;
	err = leave_mounts();
	if (err)
		return err;
	if (mount("nodev", places[0], "tracefs", 0, NULL) < 0)
		mount("nodev", "/sys/kernel/debug", "debugfs", 0, NULL);
	return tracefs_find(root);
}

/*
 * Whether the agent that made it is gone. In a container, where process ids are others, it may be wrong: but an instance that
 * somebody has open can't be removed. owner: see tracefs_owner(), and more behind it. Older agents wrote no start, and processes
 * have none of 0. What has no number there is somebody else's.
 */
static bool is_gone(const char *owner)
{
	long long started = 0;
	int agent = 0;

	return sscanf(owner, "%d_%lld", &agent, &started) > 0 && agent > 0 &&
	       (started || agent == getpid() ? !processes_live(agent, started) : kill(agent, 0) < 0 && errno == ESRCH);
}

int tracefs_define(struct undo *undo, const char *file, const char *kind, const char *place, const char *name)
{
	char value[4200], taker[96];

	snprintf(taker, sizeof(taker), "-:" TRACEFS_EVENTS "%s/%s", tracefs_owner(), name);
	snprintf(value, sizeof(value), "%s%s %.*s", kind, taker + 1, (int)strcspn(place, " "), place);
	return undo_append(undo, file, value, taker);
}

bool tracefs_in_use(const char *root, bool (*is_used)(const char *folder))
{
	char path[TRACEFS_PATH + 300];
	bool used = is_used && is_used(root);

	snprintf(path, sizeof(path), "%s/instances", root);
	DIR *folder = opendir(path);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		bool ours = !strncmp(entry->d_name, TRACEFS_OURS, strlen(TRACEFS_OURS));

		snprintf(path, sizeof(path), "%s/instances/%s", root, entry->d_name);
		if (ours && is_gone(entry->d_name + strlen(TRACEFS_OURS)))
			rmdir(path);
		else if (entry->d_name[0] != '.' && is_used && is_used(path))
			used = true;
	}
	if (folder)
		closedir(folder);
	return used;
}
