/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of the machine that a run changes. A separate process, the keeper, restores them, the last change first, when the agent
 * ends for whatever reason. The keeper is this program again ("rtproof-agent keep") and not a fork: after a fork, the measuring
 * threads would fault on every page they write to. It leaves the agent's control group where it may.
 *
 * The agent notes each change in a file before making it: rtproof-undo-PID-START-BOOT-N in /run, $XDG_RUNTIME_DIR, /dev/shm or /tmp.
 * If the keeper is killed too, the file stays, and the next agent of this user, whatever it is to do, restores what the file names:
 * a setting only if it still has the value that the dead agent wrote.
 *
 * The settings that a user asked for (see undo_set) have a journal of their own, rtproof-settings-..., on the disk: in
 * /var/lib/rtproof where it can be written. Each line of it is on the medium before the change. What somebody else has changed since
 * is left alone, by the keeper too; then the journal stays, so that the next agent says so.
 */
#ifndef RTPROOF_UNDO_H
#define RTPROOF_UNDO_H

#include "system/setting.h"

#include <stdbool.h>
#include <sys/types.h>

struct undo {
	pid_t keeper; /* 0: there is none */
	int line;     /* a pipe whose other end the keeper reads: it ends with the agent */
	int journal;  /* the file of the changes */
	bool lasting; /* each line is flushed to the medium */
};

/* 0 or -errno. */
int undo_open(struct undo *undo);

/* The same for the settings that a user asked for. */
int undo_open_settings(struct undo *undo);

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

/*
 * Sets something that setting.h names, and reads back what it is then, which may differ: kernels round. before: what it was.
 * -EALREADY: another run has set it, and will restore it. undo_note: something that is about to be changed otherwise. 0 or -errno.
 */
int undo_set(struct undo *undo, const char *name, const char *value, char before[SETTING_MOST], char shown[SETTING_MOST]);
#define UNDO_ANY "*" /* written, if the kernel decides what becomes of it */
int undo_note(const struct undo *undo, const char *name, const char *before, const char *written);
int undo_applied(struct undo *undo); /* once no more will be set */

/* Waits until all is as it was. */
void undo_close(struct undo *undo);

/* The command of the keeper, and what it does. Its exit code. */
#define UNDO_KEEPER "keep"

int undo_main(void);

/* What "rtproof-agent undo" does when a user calls it: restores what killed runs left, and says all of it. Its exit code. */
int undo_for_user(void (*reach)(void));

/*
 * Restores what dead agents of this user left, and says which settings it restored and which ones somebody has changed since. reach:
 * called in a child process before it restores something, to mount what it needs. How many journals there were; all: how many of
 * them are done with.
 */
int undo_sweep(void (*reach)(void), int *done);

#endif
