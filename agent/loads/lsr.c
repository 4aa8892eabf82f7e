/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ls -lR /`, over and over: lists every folder and asks for the state of every entry, /proc and /sys among them. It goes no
 * deeper than any system is, and not into file systems that other machines or programs answer for: those may never answer.
 */
#include "system/sys.h"

#include "loads/load.h"
#include "system/folder.h"
#include "system/text.h"

#include <string.h>
#include <sys/stat.h>

enum { WORKERS, PATH, RATE };
enum { PATH_LENGTH = 1024, MOUNTS = 65536, ROUND = 64 };

static const struct load_option options[] = {
	{ "workers", "processes (default: 1)", 1, LOAD_SLOTS, 1 },
	{ "path", "folder to begin with (default: /)", 1, PATH_LENGTH / 2, LOAD_TEXT },
	{ "rate", "entries of each in a second (default: 0, as many as the kernel lets it)", 0, INT32_MAX, 0 },
	{ NULL, NULL, 0, 0, 0 },
};

struct walk {
	struct load_slot *slot;
	const char *foreign; /* mount points */
	char path[PATH_LENGTH];
	size_t lengths[FOLDER_DEPTH]; /* of the paths of the folders that are open, the one in the other */
	DIR *folders[FOLDER_DEPTH];
	int depth;
	struct load_pace pace;
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

static void enter(struct walk *walk, size_t length)
{
	DIR *folder = walk->depth < FOLDER_DEPTH ? opendir(length ? walk->path : "/") : NULL;

	if (!folder)
		return;
	walk->lengths[walk->depth] = length;
	walk->folders[walk->depth++] = folder;
}

static void visit(struct walk *walk, const char *name)
{
	size_t length = walk->lengths[walk->depth - 1], size = strlen(name);

	if (length + size + 2 > PATH_LENGTH)
		return;
	walk->path[length] = '/';
	memcpy(walk->path + length + 1, name, size + 1);
	if (++walk->slot->work % ROUND == 0)
		load_await_round(&walk->pace);
	if (!mounts_hold(walk->foreign, walk->path) && look(walk->path))
		enter(walk, length + 1 + size);
}

/* What is gone, secret or too deep is left out. */
static void list(struct walk *walk, size_t length)
{
	walk->path[length] = '\0';
	enter(walk, length);
	while (walk->depth) {
		struct dirent *entry = folder_next(walk->folders[walk->depth - 1]);

		if (entry)
			visit(walk, entry->d_name);
		else
			walk->depth--;
	}
}

static int prepare(struct load_order *order)
{
	order->rest_ns = load_rest_ns(ROUND, order->values[RATE]);
	return 0;
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	static struct walk walk;
	char *mounts = load_map(MOUNTS);
	size_t length = strlen(start_of(order));
	uint32_t before;

	if (!mounts)
		return -ENOMEM;
	memcpy(walk.path, start_of(order), length);
	while (length && walk.path[length - 1] == '/')
		length--;
	walk.slot = slot;
	walk.foreign = mounts;
	walk.pace = load_pace(ROUND, order->values[RATE]);
	do {
		int n = text_read_file("/proc/mounts", mounts, MOUNTS - 2);

		mounts[n > 0 ? n : 0] = '\0';
		mounts_keep_foreign(mounts);
		before = slot->work;
		list(&walk, length);
	} while (slot->work != before); /* an empty folder is no load */
	return -ENOENT;
}

const struct load load_lsr = {
	.name = "lsr",
	.help = "all folders listed with the state of every entry, as ls -lR / does",
	.unit = "entries",
	.options = options,
	.unsupported = unsupported,
	.prepare = prepare,
	.work = work,
};
