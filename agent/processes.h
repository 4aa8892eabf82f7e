/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that one has started, with all that these started, whatever group or session they went to: from /proc. */
#ifndef RTPROOF_PROCESSES_H
#define RTPROOF_PROCESSES_H

#include <stdint.h>
#include <sys/types.h>

struct process {
	pid_t pid, parent, session;
	int64_t cpu_ticks; /* its own, and of its children that it has waited for */
	int64_t pages;     /* of memory, shared ones included */
};

struct processes {
	struct process *each; /* from malloc() */
	int count;
};

/*
 * All that descend from the root, or are in its session; not the root itself. Once there are more than `most` it looks no
 * further. 0, or a negative errno, and then there are none.
 */
int processes_below(pid_t root, int64_t most, struct processes *found);

/* SIGKILL to each. How many there were, or a negative errno. */
int processes_kill(pid_t root);

/* The calling process as /proc has it, also when it sees itself otherwise from a PID namespace. 0 or a negative errno. */
int processes_self(struct process *self);

#endif
