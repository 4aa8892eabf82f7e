/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One setting of the machine, by its name:
 *   /PATH                 a file of one line, its tabs as blanks; of several values the one in brackets
 *   policy:TID:STARTED    the scheduling policy and priority of a thread, such as "fifo:50" or "other:0"
 *   cpus:TID:STARTED      the affinity of a thread, such as "0-3"
 *   born:TICKS:CPUS       the affinity CPUS of threads that started later than TICKS: they inherited it
 *   link:DEVICE:FIELD     how a network device coalesces interrupts: rx-usecs, tx-usecs, adaptive-rx or adaptive-tx
 *   controller:NAME       whether the groups below the root of all control groups have it: on or off
 * STARTED and TICKS: clock ticks from boot, so that a later thread of the same number is another one.
 */
#ifndef RTPROOF_SETTING_H
#define RTPROOF_SETTING_H

#include "system/processes.h"

#include <stddef.h>

enum { SETTING_MOST = 1024 };

/* 0 or -errno; -ENOENT, -ESRCH or -ENODEV: there is no such thing any more. */
int setting_read(const char *name, char value[SETTING_MOST]);
int setting_write(const char *name, const char *value);

/*
 * Calls take() for each thread whose name matches a pattern of the shell; of this process's own threads none. Ends with its
 * first result that is not 0. 0 or -errno.
 */
int setting_each_thread(const char *pattern, int (*take)(void *given, const struct process *thread), void *given);

/* Whether a thread may not be moved at all: one that the kernel keeps on its CPU. */
bool setting_thread_is_kept(const char *name);

#endif
