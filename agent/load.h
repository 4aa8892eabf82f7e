/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load disturbs on purpose: a file in loads/ that defines load_NAME. It runs in processes of its own, in a group of its
 * own that dies with the agent however the agent dies, and it counts its work where the agent can see it.
 */
#ifndef RTPROOF_LOAD_H
#define RTPROOF_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { LOAD_OPTIONS = 8, LOAD_SLOTS = 4096 };

struct load_option {
	const char *name, *help;
	int64_t least, most;
};

/* One worker's count of work units, alone on its cache line. It wraps; the agent adds up the differences. */
struct load_slot {
	volatile uint32_t work;
	char apart[60];
};

/* What a load is given in its own process. */
struct load_order {
	int64_t values[LOAD_OPTIONS]; /* in the order of the options; -1: not given */
	int cpus;                     /* CPUs that the load may use */
	struct load_slot *slots;
};

struct load {
	const char *name, *help;
	const char *unit;                   /* what is counted */
	const struct load_option *options;  /* ends with a NULL name */
	uint32_t (*slots)(const struct load_order *order); /* how many counters it needs */
	/* Works until it is killed. Returning means failure: a negative errno. */
	int (*run)(struct load_order *order);
};

extern const struct load *const loads[]; /* ends with NULL; made from the folder listing */

const struct load *load_find(const char *name);

/* "sched" or "sched:groups=4,bytes=100". 0, or -EINVAL with the reason as a sentence in why. */
int load_parse(const char *text, const struct load **load, struct load_order *order, char *why, size_t room);

/* fork() for loads: the child dies when its parent does. */
pid_t load_fork(void);

/* Waits until any child ends, which none should: -ECHILD. */
int load_wait_for_children(void);

/* A load that is running, as the agent sees it. */
struct running_load {
	const struct load *load;
	struct load_order order;
	pid_t pid; /* also its process group */
	uint32_t slots;
	uint32_t *seen; /* last reading of each slot */
	int64_t work;   /* units since the start */
};

int load_start(struct running_load *running);

/* Reads the counters and answers the work done since the start. */
int64_t load_work(struct running_load *running);

/* Kills the whole group and waits for it. */
void load_stop(struct running_load *running);

#endif
