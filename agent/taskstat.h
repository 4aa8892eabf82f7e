/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc/PID/task/TID/stat says of a thread. */
#ifndef RTPROOF_TASKSTAT_H
#define RTPROOF_TASKSTAT_H

#include <stdbool.h>

struct taskstat {
	char name[64];
	bool of_kernel;
	int nice, cpu, priority, policy; /* priority: real-time, 0 without; policy by its kernel number */
};

/* Reads such a text; false: it is none. Pure. */
bool taskstat_parse(const char *text, struct taskstat *stat);

/* 0 or -errno. */
int taskstat_read(const char *path, struct taskstat *stat);

#endif
