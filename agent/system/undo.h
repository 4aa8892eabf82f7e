/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of the machine that a run changes. A separate process, the keeper, restores them, the last change first, when the agent
 * ends for whatever reason. The keeper is this program again ("rtproof-agent undo") and not a fork: after a fork, the measuring
 * threads would fault on every page they write to. It leaves the agent's control group where it may.
 *
 * The agent notes each change in a file before making it: rtproof-undo-PID-START-BOOT-N in /run, $XDG_RUNTIME_DIR, /dev/shm or /tmp.
 * If the keeper is killed too, the file stays, and the next agent of this user, whatever it is to do, restores what the file names:
 * a setting only if it still has the value that the dead agent wrote.
 */
#ifndef RTPROOF_UNDO_H
#define RTPROOF_UNDO_H

#include <sys/types.h>

struct undo {
	pid_t keeper; /* 0: there is none */
	int line;     /* a pipe whose other end the keeper reads: it ends with the agent */
	int journal;  /* the file of the changes */
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
 * of that key. Told of it before, so that there is no instant at which a kill would leave them; of semaphores again afterwards, with
 * their id, which is negative before. 0 or -errno.
 */
int undo_queue(struct undo *undo, const char *name);
int undo_semaphores(struct undo *undo, int key, int id);

/* Waits until all is as it was. */
void undo_close(struct undo *undo);

/* What the keeper does. Its exit code. */
int undo_main(void);

/*
 * Restores what dead agents of this user left, and says which settings somebody has changed since. reach: called in a child process
 * before it restores something, to mount what it needs.
 */
void undo_sweep(void (*reach)(void));

#endif
