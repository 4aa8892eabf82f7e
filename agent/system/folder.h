/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder that does not outlive its users: one for the files of a load, or one that stands for an object of the kernel,
 * such as a control group. A user of the folder may be killed at any instant, so a separate process, the cleaner, makes and
 * removes it. The cleaner removes the folder when the last process that holds its line to the cleaner ends. If the cleaner
 * is killed too, the folder stays; its name tells the owner, so the next start of the agent removes it.
 */
#ifndef RTPROOF_FOLDER_H
#define RTPROOF_FOLDER_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { FOLDER_PATH = 256, FOLDER_DEPTH = 64 };

struct folder {
	pid_t cleaner; /* 0: there is none */
	int line;
	char path[FOLDER_PATH];
};

/* How one is made, for what it is given: 0 or -errno, and a path of fewer than FOLDER_PATH characters. And how it is removed. */
struct folder_kind {
	int (*make)(char *path, const void *what);
	void (*remove)(const char *path);
};

/* Both in the process apart. 0 or -errno. */
int folder_open_as(struct folder *folder, const struct folder_kind *kind, const void *what);

/* Makes one at a place, locked and named after the agent, its parent. For the process apart. 0 or -errno. */
int folder_make(char *path, const char *place);

/*
 * Removes the folders at a place that agents of this user left behind there: the agent that the name tells no longer lives, and
 * nobody holds the lock, as somebody does in a container with process numbers of its own.
 */
void folder_sweep(const char *place, void (*remove)(const char *path));

/* The same for the place of folder_open(). */
void folder_sweep_files(void);

/* Makes a folder in $TMPDIR or /tmp. 0 or -errno. */
int folder_open(struct folder *folder);

/* Bytes that may be written at its place. Where files live in memory, no more than the memory there is. */
int64_t folder_room(const struct folder *folder);

/* Gives up this process's end of the line; children forked before have theirs. */
void folder_leave(struct folder *folder);

/* Waits until nobody uses it and it is gone. */
void folder_await_end(struct folder *folder);

/* The next entry but . and .., or NULL: then there was none, and the folder is closed. */
struct dirent *folder_next(DIR *folder);

/* Bytes of memory to be had without swapping, and before Linux 3.14 what is free. INT64_MAX: /proc does not tell. */
int64_t memory_room(void);

/* Turns the three standard streams to /dev/null, so that no reader of the agent's waits for this process. */
void streams_close(void);

/* Mount points where another machine or a program answers, and may never answer. */

/*
 * Turns the text of /proc/mounts, in its place, into a list of such mount points: each ended by a zero, the list by an empty
 * one. There must be room for two zeros behind the text.
 */
void mounts_keep_foreign(char *text);

/* Whether such a list has this path. */
bool mounts_hold(const char *list, const char *path);

#endif
