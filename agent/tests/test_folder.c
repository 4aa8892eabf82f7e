/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "folder.h"

#include "check.h"
#include "scratch.h"

#include <string.h>
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

int main(void)
{
	alarm(PATIENCE_S);
	scratch_file();
	CHECK(setenv("TMPDIR", scratch_folder, 1) == 0);
	it_goes_with_its_files_when_all_have_left();
	it_goes_with_its_folders();
	it_stays_for_a_user_and_goes_when_that_is_killed();
	a_place_that_is_not_there_is_an_error();
	room_is_that_of_the_place();
	CHECK(rmdir(scratch_folder) == 0);
	return EXIT_SUCCESS;
}
