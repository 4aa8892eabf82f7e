/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the machine that a run has by --set NAME=VALUE, from before its loads start until it ends. NAME is one of setting.h,
 * a file only in the folders that settings_check() allows, or:
 * A name of a file may be a pattern of the shell, and link:*:FIELD is of all devices. A VALUE @FILE is what the file beside it says.
 *   threads:PATTERN:policy   of all threads whose name matches, such as threads:rcuc*:policy=fifo:50
 *   threads:PATTERN:cpus     likewise; a thread that the kernel keeps on its CPU stays there
 *   mkdir:/PATH              a control group that goes with the run; its files are set without a journal (no value)
 *   join:/PATH               the run itself moves there when its loads have started, which stay outside (no value)
 */
#ifndef RTPROOF_SETTINGS_H
#define RTPROOF_SETTINGS_H

#include "measure/shared.h"
#include "system/undo.h"

struct settings {
	struct undo undo;
	struct applied *each; /* from malloc() */
	int count;
};

/* 0, or -EINVAL with the reason as a sentence in why, which the other calls have too. Changes nothing. */
int settings_check(const char *text, char *why, size_t room);

/* All of them in the order given, or none: what was set before a refusal is restored. 0 or -errno. */
int settings_apply(struct settings *settings, const struct config *config, char *why, size_t room);

/* What shall move with the run, now that its loads have started. 0 or -errno. */
int settings_join(const struct config *config, char *why, size_t room);

/* Into the record: what each was, what was asked for, and what it became; at the end, what somebody else has changed since. */
void settings_describe(struct settings *settings, struct run *run, enum moment moment);

/* Sets all, says on standard error what became of each, and restores all. 0 or -errno. */
int settings_try(const struct config *config, char *why, size_t room);

/* Restores all. */
void settings_restore(struct settings *settings);

#endif
