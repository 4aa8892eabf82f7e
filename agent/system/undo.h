/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of the machine that a run changes. A separate process restores them, the last change first, when the agent ends
 * for whatever reason. The agent tells it of each change before making that change. The process is this program again
 * ("rtproof-agent undo", told over its standard input) and not a fork: after a fork, the measuring threads would fault on
 * every page they write to.
 */
#ifndef RTPROOF_UNDO_H
#define RTPROOF_UNDO_H

#include <sys/types.h>

struct undo {
	pid_t keeper; /* 0: there is none */
	int line, journal; /* the ends of the pipe that holds the changes until the agent ends */
};

/* 0 or -errno. */
int undo_open(struct undo *undo);

/* Why a change was refused, for people. */
const char *undo_error(int err);

/*
 * Writes a value into a file whose first line is the present one, or has it in brackets among others. Nothing is written if the
 * value is there already. 0 or -errno.
 */
int undo_write(struct undo *undo, const char *path, const char *value);

/* The same where the present value can't be read from the file. */
int undo_replace(struct undo *undo, const char *path, const char *value, const char *before);

/* Writes a value into a file that refuses what is so already; another file takes it back. Told of it when it has been done. */
int undo_by(struct undo *undo, const char *path, const char *value, const char *taker);

/* Adds a value to a file that holds several; another value takes it back, which begins with "!" or "-:". Told of it before. */
int undo_append(struct undo *undo, const char *path, const char *value, const char *taker);

/* Makes a folder. */
int undo_mkdir(struct undo *undo, const char *path);

/*
 * What is about to be made and shall not outlive this process: a message queue of that name (without its slash), or the semaphores
 * of that key. Told of it before, so that there is no instant at which a kill would leave them. 0 or -errno.
 */
int undo_queue(struct undo *undo, const char *name);
int undo_semaphores(struct undo *undo, int key);

/* Waits until all is as it was. */
void undo_close(struct undo *undo);

/* What the process apart does. Its exit code. */
int undo_main(void);

#endif
