/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a record a host has safely while it is measured, and what the link has cost so far. The process that follows the
 * run for the host writes it into the file `delivery` of the run's folder; the agent that measures reads it there.
 */
#ifndef RTPROOF_DELIVERY_H
#define RTPROOF_DELIVERY_H

#include <stdint.h>

enum { DELIVERY_NAMES = 160 };

struct delivery {
	int64_t record, log; /* bytes that the host has safely, from the begin of each file */
	int64_t sent;        /* bytes that went to the connection, with all that was sent twice */
	int64_t wakeups;     /* voluntary switches of the follower, and of the server's process that serves the connection */
	int64_t cpu_ns;      /* CPU time of both; the server's in clock ticks */
	char cpus[DELIVERY_NAMES];   /* where the follower and the server were seen to run: a CPU list; "-": nowhere yet */
	char device[DELIVERY_NAMES]; /* that carries the link: names and numbers of its interrupts, with commas; "-": not known */
};

/* 0, or -errno: -ENOENT while nothing was delivered, -EINVAL if the file says something else. */
int delivery_read(const char *folder, struct delivery *delivery);

/* Replaces the file as a whole. Nothing is flushed: the folder is in RAM. 0 or -errno. */
int delivery_write(const char *folder, const struct delivery *delivery);

#endif
