/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a run in the background: a run that outlives the connection through which it was started. Whoever connects
 * later finds it by these files, also after the board was switched off and on:
 *
 *   state       "WAITER STARTED AGENT STARTED BOOT": two processes, when each started in clock ticks from boot, and the boot's id
 *   log         what the agent printed
 *   exit        "exit CODE" or "signal NUMBER", once the agent has ended
 *   follower    locked by the process that follows the run for a host; its content says for whom
 *   run.rtrec   the record
 *   measured    of a run that is streamed: the CPUs that it measures
 *   delivery    of a run that is streamed: what the host has, and what the link has cost (record/delivery.h)
 */
#ifndef RTPROOF_BACKGROUND_FOLDER_H
#define RTPROOF_BACKGROUND_FOLDER_H

#include "system/processes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BACKGROUND_PATH = 512 };

struct background {
	pid_t waiter, agent;
	int64_t waiter_started, agent_started; /* clock ticks from boot */
	char boot[BOOT_ID_ROOM];
};

/* FOLDER/NAME. False: it is too long. */
bool background_path(char path[BACKGROUND_PATH], const char *folder, const char *name);

/* Replaces a file of the folder as a whole, on the medium too. 0 or -errno. */
int background_write(const char *folder, const char *name, const char *text);

/* Flushes a file or a folder to its medium. 0, or -errno if it cannot be opened. */
int background_flush(const char *path);

/* What `state` says. 0, or -errno; -EINVAL: it is damaged. */
int background_read(const char *folder, struct background *background);

/*
 * How the run stands, in one word or two: "running"; what `exit` says; "other-boot": the board was booted since; "vanished":
 * it ended and nobody could say how.
 */
void background_standing(const char *folder, const struct background *background, char *words, size_t room);

/* Removes what is left of a run that did not start. */
void background_discard(const char *folder);

/* Why background_read() has failed: the run is gone (-ENOENT), or it is there and cannot be read. Returns err. */
int background_no_run(const char *folder, int err, char *why, size_t room);

/* Removes all files of the folder, and the folder. -EBUSY: the run goes on. 0 or -errno. */
int background_remove(const char *folder);

#endif
