/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/folder.h"

#include "system/processes.h"

#include "check.h"
#include "scratch.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PATIENCE_S = 60, FILES = 300 };

static bool exists(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0;
}

static void fill(const struct folder *folder)
{
	char path[FOLDER_PATH + 32];

	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder->path, i);
		FILE *file = fopen(path, "w");

		CHECK(file && fclose(file) == 0);
	}
}

/* Also what is in folders in it; where a link leads to is not in it. */
static void it_goes_with_its_folders(void)
{
	struct folder folder = { .cleaner = 0 };
	char outside[300], path[FOLDER_PATH + 32];

	snprintf(outside, sizeof(outside), "%s/outside", scratch_folder);
	CHECK(mkdir(outside, 0700) == 0);
	CHECK(folder_open(&folder) == 0);
	for (const char *const *name = (const char *const[]){ "a", "a/b", "a/b/c", "a/d", NULL }; *name; name++) {
		snprintf(path, sizeof(path), "%s/%s", folder.path, *name);
		CHECK(mkdir(path, 0700) == 0);
	}
	snprintf(path, sizeof(path), "%s/a/link", folder.path);
	CHECK(symlink(scratch_folder, path) == 0);
	fill(&folder);
	folder_leave(&folder);
	folder_await_end(&folder);
	CHECK(!exists(folder.path));
	CHECK(rmdir(outside) == 0);
}

static void it_goes_with_its_files_when_all_have_left(void)
{
	struct folder folder = { .cleaner = 0 };
	struct stat status;

	CHECK(folder_open(&folder) == 0);
	CHECK(!strncmp(folder.path, scratch_folder, strlen(scratch_folder)));
	CHECK(stat(folder.path, &status) == 0 && S_ISDIR(status.st_mode) && (status.st_mode & 0777) == 0700);
	CHECK(getpgid(folder.cleaner) != getpgrp());
	fill(&folder);
	folder_leave(&folder);
	folder_await_end(&folder);
	CHECK(!exists(folder.path) && folder.cleaner == 0);
	folder_leave(&folder); /* once more does nothing */
	folder_await_end(&folder);
}

/* The user holds the line longer than the one who opened the folder, and dies without a chance to clean up. */
static void it_stays_for_a_user_and_goes_when_that_is_killed(void)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM };
	struct folder folder = { .cleaner = 0 };

	CHECK(folder_open(&folder) == 0);
	pid_t user = fork();

	if (user == 0) {
		pause();
		_exit(0);
	}
	CHECK(user > 0);
	fill(&folder);
	folder_leave(&folder);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		CHECK(kill(folder.cleaner, signals[i]) == 0);
	CHECK(waitpid(folder.cleaner, NULL, WNOHANG) == 0);
	CHECK(exists(folder.path));
	CHECK(kill(user, SIGKILL) == 0 && waitpid(user, NULL, 0) == user);
	folder_await_end(&folder);
	CHECK(!exists(folder.path));
}

/* In the place of an agent: it opens a folder, tells where, and is killed with all that it has started. */
static void leave_behind(struct folder *folder)
{
	int ends[2];

	CHECK(pipe(ends) == 0);
	pid_t agent = fork();

	CHECK(agent >= 0);
	if (agent == 0) {
		CHECK(folder_open(folder) == 0 && write(ends[1], folder, sizeof(*folder)) == sizeof(*folder));
		for (;;)
			pause();
	}
	CHECK(read(ends[0], folder, sizeof(*folder)) == sizeof(*folder));
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
	fill(folder);
	folder_sweep_files();
	CHECK(exists(folder->path)); /* its owner lives */
	CHECK(kill(folder->cleaner, SIGKILL) == 0);
	folder_sweep_files();
	CHECK(exists(folder->path));
	CHECK(kill(agent, SIGKILL) == 0);
	siginfo_t end;

	CHECK(waitid(P_PID, (id_t)agent, &end, WEXITED | WNOWAIT) == 0);
	while (exists(folder->path)) /* the kernel may still be letting go of the lock */
		folder_sweep_files();
	CHECK(waitpid(agent, NULL, 0) == agent); /* not before: one that has ended does not live */
}

static void what_was_left_behind_goes_at_the_next_start(void)
{
	struct folder folder = { .cleaner = 0 };

	leave_behind(&folder);
	CHECK(!exists(folder.path));
}

static int make(char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A folder with a file in it: an open descriptor of the folder. */
static int make(char *path, const char *format, ...)
{
	va_list arguments;
	int length = snprintf(path, FOLDER_PATH, "%s/", scratch_folder);

	va_start(arguments, format);
	vsnprintf(path + length, FOLDER_PATH, format, arguments);
	va_end(arguments);
	CHECK(mkdir(path, 0700) == 0);
	int fd = open(path, O_RDONLY | O_DIRECTORY), file = openat(fd, "file", O_CREAT | O_WRONLY, 0600);

	CHECK(fd >= 0 && file >= 0 && close(file) == 0);
	return fd;
}

static void empty(const char *path)
{
	char file[2 * FOLDER_PATH + 32];

	snprintf(file, sizeof(file), "%s/file", path);
	CHECK(unlink(file) == 0 && rmdir(path) == 0);
}

enum { NOBODY = 999999999 }; /* more than Linux ever gives out */

static void what_is_not_left_behind_stays(void)
{
	static const char *const names[] = {
		"rtproof-load-abcdef",		"rtproof-load-999999999-1-abcde", "rtproof-load-999999999-1-abcdefg",
		"rtproof-load-0999999999-1-abcdef", "rtproof-load--999999999-1-abcdef", "rtproof-load-999999999-01-abcdef",
		"rtproof-load-999999999-1-abc_ef", "a-rtproof-load-999999999-1-abcdef", "rtproof-load-999999999--abcdef",
	};
	enum { NAMES = sizeof(names) / sizeof(*names) };
	char path[2 * FOLDER_PATH], link[2 * FOLDER_PATH], locked[2 * FOLDER_PATH], foreign[2 * FOLDER_PATH];
	struct process self;

	for (int i = 0; i < NAMES; i++)
		CHECK(close(make(path, "%s", names[i])) == 0);
	CHECK(processes_self(&self) == 0 && processes_live(self.pid, self.started));
	int ours = make(path, "rtproof-load-%d-%lld-abcdef", (int)getpid(), (long long)self.started);
	int lock = make(locked, "rtproof-load-%d-2-abcdef", NOBODY), other = make(foreign, "rtproof-load-%d-3-abcdef", NOBODY);

	CHECK(flock(lock, LOCK_EX | LOCK_NB) == 0 && close(ours) == 0 && close(other) == 0);
	bool may_give = chown(foreign, 1, 1) == 0;

	snprintf(link, sizeof(link), "%s/rtproof-load-%d-4-abcdef", scratch_folder, NOBODY);
	CHECK(symlink(path, link) == 0);
	folder_sweep_files();
	CHECK(unlink(link) == 0);
	empty(path);
	empty(locked);
	CHECK(close(lock) == 0);
	if (may_give)
		empty(foreign);
	CHECK(!exists(foreign));
	for (int i = 0; i < NAMES; i++) {
		snprintf(path, sizeof(path), "%s/%s", scratch_folder, names[i]);
		empty(path);
	}
}

/* Somebody else has the number now. */
static void what_an_earlier_owner_of_our_number_left_goes(void)
{
	char path[2 * FOLDER_PATH];
	struct process self;

	CHECK(processes_self(&self) == 0 && !processes_live(self.pid, self.started - 1) && !processes_live(NOBODY, 1));
	CHECK(close(make(path, "rtproof-load-%d-%lld-Abc123", (int)getpid(), (long long)self.started - 1)) == 0);
	folder_sweep_files();
	CHECK(!exists(path));
}

static void a_place_that_is_not_there_is_an_error(void)
{
	struct folder folder = { .cleaner = 0 };
	char place[2 * FOLDER_PATH];

	snprintf(place, sizeof(place), "%s/none", scratch_folder);
	CHECK(setenv("TMPDIR", place, 1) == 0);
	CHECK(folder_open(&folder) == -ENOENT && folder.cleaner == 0);
	memset(place, 'x', sizeof(place) - 1);
	place[sizeof(place) - 1] = '\0';
	CHECK(setenv("TMPDIR", place, 1) == 0);
	CHECK(folder_open(&folder) == -ENAMETOOLONG && folder.cleaner == 0);
	CHECK(setenv("TMPDIR", scratch_folder, 1) == 0);
}

static void room_is_that_of_the_place(void)
{
	struct folder here = { .path = "/" }, in_memory = { .path = "/dev/shm" }, nowhere = { .path = "/none/at/all" };

	CHECK(memory_room() > 0);
	CHECK(folder_room(&here) >= 0);
	CHECK(folder_room(&nowhere) == 0);
	CHECK(!exists("/dev/shm") || folder_room(&in_memory) <= memory_room() + memory_room() / 2);
}

static void file_systems_of_others_are_kept(void)
{
	char text[1024] = "rootfs / rootfs rw 0 0\n"
			  "server:/home /home nfs4 rw 0 0\n"
			  "proc /proc proc rw 0 0\n"
			  "//server/share /mnt/a\\040b\\134c cifs rw 0 0\n"
			  "user@host: /mnt/ssh fuse.sshfs rw 0 0\n"
			  "systemd-1 /misc autofs rw 0 0\n"
			  "/dev/sda1 /mnt/nfs ext4 rw 0 0\n"
			  "cut /off";

	mounts_keep_foreign(text);
	CHECK(mounts_hold(text, "/home") && mounts_hold(text, "/mnt/a b\\c"));
	CHECK(mounts_hold(text, "/mnt/ssh") && mounts_hold(text, "/misc"));
	CHECK(!mounts_hold(text, "/") && !mounts_hold(text, "/proc") && !mounts_hold(text, "/mnt/nfs"));
	CHECK(!mounts_hold(text, "/off") && !mounts_hold(text, "/home/one") && !mounts_hold(text, ""));
}

static void nothing_is_kept_of_nothing(void)
{
	char text[3] = "";

	mounts_keep_foreign(text);
	CHECK(!strcmp(text, "") && !mounts_hold(text, "/"));
	memcpy(text, "\n", 2);
	mounts_keep_foreign(text);
	CHECK(!strcmp(text, ""));
}

int main(void)
{
	alarm(PATIENCE_S);
	file_systems_of_others_are_kept();
	nothing_is_kept_of_nothing();
	scratch_file();
	CHECK(setenv("TMPDIR", scratch_folder, 1) == 0);
	it_goes_with_its_files_when_all_have_left();
	it_goes_with_its_folders();
	it_stays_for_a_user_and_goes_when_that_is_killed();
	what_was_left_behind_goes_at_the_next_start();
	what_is_not_left_behind_stays();
	what_an_earlier_owner_of_our_number_left_goes();
	a_place_that_is_not_there_is_an_error();
	room_is_that_of_the_place();
	CHECK(rmdir(scratch_folder) == 0);
	return EXIT_SUCCESS;
}
