/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "folder.h"

#include "text.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>

enum { MAGIC_TMPFS = 0x01021994, MAGIC_RAMFS = (int32_t)0x858458f6 };
enum { DEPTH_MOST = 64, FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

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

/* Everything below a folder, which is closed. How much went; a file system may hide some from a reader that removes. */
static int remove_files(int fd, int depth)
{
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int removed = 0;

	while (folder && (entry = readdir(folder))) {
		const char *name = entry->d_name;

		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		if (unlinkat(dirfd(folder), name, 0) == 0) {
			removed++;
			continue;
		}
		if (depth < DEPTH_MOST)
			removed += remove_files(openat(dirfd(folder), name, FOLDER_FLAGS), depth + 1);
		removed += unlinkat(dirfd(folder), name, AT_REMOVEDIR) == 0;
	}
	if (folder)
		closedir(folder);
	return removed;
}

static void await_end_of_line(int line)
{
	char nothing;

	while (read(line, &nothing, 1) < 0 && errno == EINTR)
		;
}

/* No signal but SIGKILL reaches it, and none that goes to the agent's group or to that of the load. */
static int clean(int line)
{
	const char *place = getenv("TMPDIR");
	char path[FOLDER_PATH] = "";
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	streams_close();
	if (snprintf(path, sizeof(path), "%s/rtproof-load-XXXXXX", place && *place ? place : "/tmp") >= FOLDER_PATH)
		return ENAMETOOLONG;
	if (!mkdtemp(path))
		return errno;
	if (write(line, path, sizeof(path)) == sizeof(path))
		await_end_of_line(line);
	while (rmdir(path) < 0 && remove_files(open(path, FOLDER_FLAGS), 0) > 0)
		;
	return 0;
}

int folder_open(struct folder *folder)
{
	int ends[2], status;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	folder->cleaner = fork();
	if (folder->cleaner == 0) {
		close(ends[0]);
		_exit(clean(ends[1]));
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
		while (waitpid(folder->cleaner, NULL, 0) < 0 && errno == EINTR)
			;
	folder->cleaner = 0;
}
