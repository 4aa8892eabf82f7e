/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ls -lR /`, over and over: lists every folder and asks for the state of every entry, /proc and /sys among them. It goes no
 * deeper than any system is, and not into file systems that other machines or programs answer for: those may never answer.
 */
#include "../sys.h"

#include "../load.h"
#include "../mounts.h"

#include "../text.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

enum { WORKERS, PATH };
enum { PATH_LENGTH = 1024, DEPTH_MOST = 64, MOUNTS = 65536 };

static const struct load_option options[] = {
	{ "workers", "processes (default: 1)", 1, LOAD_SLOTS, 1 },
	{ "path", "folder to begin with (default: /)", 1, PATH_LENGTH / 2, LOAD_TEXT },
	{ NULL, NULL, 0, 0, 0 },
};

struct walk {
	struct load_slot *slot;
	const char *foreign; /* mount points */
	char path[PATH_LENGTH];
};

static const char *start_of(const struct load_order *order)
{
	return order->texts[PATH] ? order->texts[PATH] : "/";
}

static const char *unsupported(const struct load_order *order)
{
	const char *path = start_of(order);

	return *path != '/' || access(path, R_OK | X_OK) < 0 ? "path must begin with / and be a folder that can be read" : NULL;
}

/* As `ls -l` looks at an entry. True if it is a folder. */
static bool look(const char *path)
{
	struct stat state;
	char target[PATH_LENGTH];

	if (lstat(path, &state) < 0)
		return false;
	if (S_ISLNK(state.st_mode) && readlink(path, target, sizeof(target)) < 0)
		return false;
	return S_ISDIR(state.st_mode);
}

/* What is gone, secret or too deep is left out. */
static void list(struct walk *walk, size_t length, int depth)
{
	DIR *folder = depth < DEPTH_MOST ? opendir(length ? walk->path : "/") : NULL;
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		size_t size = strlen(entry->d_name);

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || length + size + 2 > PATH_LENGTH)
			continue;
		walk->path[length] = '/';
		memcpy(walk->path + length + 1, entry->d_name, size + 1);
		walk->slot->work++;
		if (!mounts_hold(walk->foreign, walk->path) && look(walk->path))
			list(walk, length + 1 + size, depth + 1);
		walk->path[length] = '\0';
	}
	if (folder)
		closedir(folder);
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	static char mounts[MOUNTS];
	static struct walk walk;
	size_t length = strlen(start_of(order));
	uint32_t before;

	memcpy(walk.path, start_of(order), length);
	while (length && walk.path[length - 1] == '/')
		walk.path[--length] = '\0';
	walk.slot = slot;
	walk.foreign = mounts;
	do {
		int n = text_read_file("/proc/mounts", mounts, sizeof(mounts) - 2);

		mounts[n > 0 ? n : 0] = '\0';
		mounts_keep_foreign(mounts);
		before = slot->work;
		list(&walk, length, 0);
	} while (slot->work != before); /* an empty folder is no load */
	return -ENOENT;
}

const struct load load_lsr = {
	.name = "lsr",
	.help = "all folders listed with the state of every entry, as ls -lR / does",
	.unit = "entries",
	.options = options,
	.unsupported = unsupported,
	.work = work,
};
