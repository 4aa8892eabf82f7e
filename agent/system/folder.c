/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/folder.h"

#include "system/control_group.h"
#include "system/processes.h"
#include "system/text.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

enum { MAGIC_TMPFS = 0x01021994, MAGIC_RAMFS = (int32_t)0x858458f6 };
enum { FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, FOLDER_NAME = 64 };

void streams_close(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
}

int64_t memory_room(void)
{
	char text[1024];
	int n = text_read_file("/proc/meminfo", text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	const char *line = strstr(text, "MemAvailable:");

	if (!line)
		line = strstr(text, "MemFree:");
	return line ? strtoll(strchr(line, ':') + 1, NULL, 10) * 1024 : INT64_MAX;
}

struct dirent *folder_next(DIR *folder)
{
	struct dirent *entry;

	while ((entry = readdir(folder)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			return entry;
	closedir(folder);
	return NULL;
}

static DIR *open_below(int fd, const char *name)
{
	int below = openat(fd, name, FOLDER_FLAGS);

	return below < 0 ? NULL : fdopendir(below);
}

/*
 * All files and empty folders below a folder: how many went. Folders that got empty by it are for the next time, as is what a file
 * system may hide from a reader that removes.
 */
static int remove_files(const char *path)
{
	DIR *folders[FOLDER_DEPTH] = { open_below(AT_FDCWD, path) };
	int depth = 1, removed = 0;

	if (!folders[0])
		return 0;
	while (depth) {
		struct dirent *entry = folder_next(folders[depth - 1]);
		int fd = entry ? dirfd(folders[depth - 1]) : -1;

		if (!entry)
			depth--;
		else if (!unlinkat(fd, entry->d_name, 0) || !unlinkat(fd, entry->d_name, AT_REMOVEDIR))
			removed++;
		else if (depth < FOLDER_DEPTH && (folders[depth] = open_below(fd, entry->d_name)))
			depth++;
	}
	return removed;
}

static void await_end_of_line(int line)
{
	char nothing;

	while (read(line, &nothing, 1) < 0 && errno == EINTR)
		;
}

/* Everything of the name but the six letters of mkdtemp(). */
static int put_name(char *name, size_t room, pid_t owner, int64_t started)
{
	return snprintf(name, room, "rtproof-load-%d-%lld-", (int)owner, (long long)started);
}

int folder_make(char *path, const char *place)
{
	struct process owner = { .pid = getppid() };
	char name[FOLDER_NAME];

	processes_look(owner.pid, &owner);
	put_name(name, sizeof(name), owner.pid, owner.started);
	if (snprintf(path, FOLDER_PATH, "%s/%sXXXXXX", place, name) >= FOLDER_PATH)
		return -ENAMETOOLONG;
	if (!mkdtemp(path))
		return -errno;
	int held = open(path, FOLDER_FLAGS); /* until this process ends */

	if (held >= 0)
		flock(held, LOCK_EX | LOCK_NB);
	return 0;
}

/* Six letters or digits behind a number and a start time, written as we write them. */
static bool is_name(const char *name, int *owner, long long *started)
{
	char expected[FOLDER_NAME];

	if (sscanf(name, "rtproof-load-%d-%lld-", owner, started) != 2 || *owner <= 0)
		return false;
	size_t length = (size_t)put_name(expected, sizeof(expected), *owner, *started);

	if (strncmp(name, expected, length) || strlen(name) != length + 6)
		return false;
	while (isalnum((unsigned char)name[length]))
		length++;
	return !name[length];
}

static bool is_left_behind(int place, const char *name)
{
	struct stat status;
	long long started;
	int owner;

	if (!is_name(name, &owner, &started) || processes_live(owner, started))
		return false;
	int fd = openat(place, name, FOLDER_FLAGS);
	bool ours = fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0;

	if (fd >= 0)
		close(fd);
	return ours;
}

void folder_sweep(const char *place, void (*remove)(const char *path))
{
	DIR *all = opendir(place);
	struct dirent *entry;
	char path[FOLDER_PATH];

	while (all && (entry = folder_next(all)))
		if (is_left_behind(dirfd(all), entry->d_name) &&
		    snprintf(path, sizeof(path), "%s/%s", place, entry->d_name) < FOLDER_PATH)
			remove(path);
}

static const char *files_place(void)
{
	const char *place = getenv("TMPDIR");

	return place && *place ? place : "/tmp";
}

static int make_folder(char *path, const void *what)
{
	(void)what;
	return folder_make(path, files_place());
}

static void remove_folder(const char *path)
{
	while (rmdir(path) < 0 && remove_files(path) > 0)
		;
}

/* No signal but SIGKILL reaches it, and none that goes to the agent's group or to that of the load. */
static int clean(int line, const struct folder_kind *kind, const void *what)
{
	char path[FOLDER_PATH] = "";
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	streams_close();
	int err = kind->make(path, what);

	if (err)
		return -err;
	control_group_leave(0);
	if (write(line, path, sizeof(path)) == sizeof(path))
		await_end_of_line(line);
	kind->remove(path);
	return 0;
}

int folder_open_as(struct folder *folder, const struct folder_kind *kind, const void *what)
{
	int ends[2], status;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	folder->cleaner = fork();
	if (folder->cleaner == 0) {
		close(ends[0]);
		_exit(clean(ends[1], kind, what));
	}
	int err = folder->cleaner < 0 ? -errno : 0;

	close(ends[1]);
	folder->line = ends[0];
	if (!err && read(ends[0], folder->path, sizeof(folder->path)) == sizeof(folder->path))
		return 0;
	close(ends[0]);
	if (!err)
		err = waitpid(folder->cleaner, &status, 0) > 0 && WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
	folder->cleaner = 0;
	return err;
}

void folder_sweep_files(void)
{
	folder_sweep(files_place(), remove_folder);
}

int folder_open(struct folder *folder)
{
	static const struct folder_kind files = { make_folder, remove_folder };

	return folder_open_as(folder, &files, NULL);
}

int64_t folder_room(const struct folder *folder)
{
	struct statfs status;
	int64_t room = INT64_MAX, memory = memory_room();

	if (statfs(folder->path, &status) < 0)
		return 0;
	if (status.f_blocks > 0) /* ramfs does not say how much it may take */
		room = (int64_t)status.f_bavail * (int64_t)status.f_bsize;
	bool in_memory = (int32_t)status.f_type == MAGIC_TMPFS || (int32_t)status.f_type == MAGIC_RAMFS;

	return in_memory && memory < room ? memory : room;
}

void folder_leave(struct folder *folder)
{
	if (folder->cleaner > 0)
		close(folder->line);
}

void folder_await_end(struct folder *folder)
{
	if (folder->cleaner > 0)
		kill(folder->cleaner, SIGCONT); /* should someone have stopped it */
	if (folder->cleaner > 0)
		while (waitpid(folder->cleaner, NULL, 0) < 0 && errno == EINTR)
			;
	folder->cleaner = 0;
}

static bool is_foreign(const char *type)
{
	static const char *const types[] = { "nfs", "cifs", "smb", "9p", "virtiofs", "fuse", "autofs", "ceph", "afs", "coda",
					     "gluster", "lustre", "gfs", "ocfs", "ncp" };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strncmp(type, types[i], strlen(types[i])))
			return true;
	return false;
}

/* /proc/mounts writes a space in a path as \040. */
static char *put_path(char *to, const char *from)
{
	while (*from)
		if (*from == '\\' && strlen(from) > 3) {
			*to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0');
			from += 4;
		} else {
			*to++ = *from++;
		}
	*to++ = '\0';
	return to;
}

void mounts_keep_foreign(char *mounts)
{
	char *to = mounts, *rest = NULL, *words;

	for (char *line = strtok_r(mounts, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		strtok_r(line, " ", &words);
		const char *path = strtok_r(NULL, " ", &words), *type = strtok_r(NULL, " ", &words);

		if (path && type && is_foreign(type))
			to = put_path(to, path);
	}
	*to = '\0';
}

bool mounts_hold(const char *list, const char *path)
{
	for (; *list; list += strlen(list) + 1)
		if (!strcmp(list, path))
			return true;
	return false;
}
