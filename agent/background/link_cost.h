/* SPDX-License-Identifier: Apache-2.0 */
/* What a link costs the board whose run it carries: CPU time and wake-ups of the follower and of the server behind it. */
#ifndef RTPROOF_LINK_COST_H
#define RTPROOF_LINK_COST_H

#include "record/delivery.h"
#include "system/cpus.h"

#include <stdint.h>
#include <sys/types.h>

struct link_cost {
	pid_t server; /* the process of sshd or dropbear that serves this connection; 0: none is known */
	int64_t server_wakeups, server_ticks; /* when the follower began */
	int64_t wakeups, cpu_ns, sent;        /* of the followers before */
	struct cpus cpus;                     /* seen so far */
	char device[DELIVERY_NAMES];
};

/* before: what was delivered until now, or all zeros. */
void link_cost_open(struct link_cost *cost, const struct delivery *before);

/* Notes where the follower and the server run just now. */
void link_cost_look(struct link_cost *cost);

/* Fills in all but what the host has. sent: by this follower. */
void link_cost_tell(const struct link_cost *cost, int64_t sent, struct delivery *delivery);

/* The calling process leaves the CPUs of a list such as "0-2", if others are allowed. */
void link_leave_cpus(const char *list);

#endif
