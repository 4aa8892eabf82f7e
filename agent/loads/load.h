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

enum {
	LOAD_OPTIONS = 8,
	LOAD_SLOTS = 4096,
	LOAD_PER_CPU = -1, /* as a preset */
	LOAD_TEXT = -2,    /* as a preset: the value is a text, in `texts`, of `least` to `most` characters */
	LOAD_MIB = 1024 * 1024,
	LOAD_GIVEN = 1024, /* characters of an order as given */
	LOAD_WHY = 192,
	LOAD_WORDS = 64,
};

struct folder;

struct load_option {
	const char *name, *help;
	int64_t least, most, preset;
};

/* One worker's count of work units, alone on its cache line. It wraps; the agent adds up the differences. */
struct load_slot {
	volatile uint32_t work;
	char apart[60];
};

/* What a load is given in its own process. */
struct load_order {
	int64_t values[LOAD_OPTIONS]; /* in the order of the options; -1: not given, until load_start() fills in the preset */
	const char *texts[LOAD_OPTIONS]; /* of options that are texts; NULL: not given */
	int cpus;                     /* how many CPUs the load may use: those that it is bound to, or all of this process */
	struct load_slot *slots;
	const char *note;  /* how it goes here, for the record; prepare() may say it */
	const char *lack;  /* what it does less than it should, for the record; prepare() may say it */
	const struct folder *group; /* holds a program to its limits; NULL: there is none */
	bool patient;      /* nothing is measured meanwhile, so it goes on when another host does not answer for a while */
	bool last;         /* none of its processes may have a real-time priority: the measuring threads have the lowest one */
	int64_t rest_ns;   /* it may do no work for so long, on purpose; prepare() may say it */
	char *const *words; /* the command of a program of the system's, ends with NULL; NULL: the load is one of ours */
	char *why; /* of LOAD_WHY characters: what a load that fails writes here is told instead of its errno */
};

struct load {
	const char *name, *help;
	const char *unit;                   /* what is counted */
	const char *(*unit_of)(const struct load_order *order); /* the same where the options say it; else NULL */
	const struct load_option *options;  /* ends with a NULL name */
	/* What is missing here, or NULL; `list` asks too, with presets only. NULL: it can always run. */
	const char *(*unsupported)(const struct load_order *order);
	/* How many counters it needs. NULL: its first option says it. */
	uint32_t (*slots)(const struct load_order *order);
	/* Before anything is started: looks whether there is room, may fill in values. 0 or a negative errno. NULL: nothing to do. */
	int (*prepare)(struct load_order *order);
	/* Bytes of files at most, in a folder of its own: its working directory, removed in the end. NULL: it has no files. */
	int64_t (*space)(const struct load_order *order);
	/*
	 * Works until it is killed, for one of the counters in a process of its own. Returning means failure: a negative errno.
	 * NULL: `run` does all, in one process that starts others.
	 */
	int (*work)(const struct load_order *order, struct load_slot *slot);
	int (*run)(struct load_order *order);
};

extern const struct load *const loads[]; /* ends with NULL; made from the folder listing */

const struct load *load_find(const char *name);

/* fork() for loads: the child dies when its parent does. */
pid_t load_spawn(void);

/* The calling process dies when this one does, its parent; at once if that is no longer there. */
void load_die_with(pid_t parent);

/* Waits until any child ends, which none should: its exit code as a negative errno, -ECHILD if it was killed. */
int load_wait_for_children(void);

/* The agent's signals as a new process has them. */
void load_default_signals(void);

/* How a process ended, as a negative errno. */
int load_exit_error(int status);

/*
 * For a load whose `parts` processes take option `mib` of memory each. Not given: `most`, or less, so that all together take
 * a quarter of what the machine can give. Given, and more than half of that: -ENOMEM.
 */
int load_share_memory(struct load_order *order, int mib, int64_t most, int64_t parts);

/* A file in the load's folder, or a negative errno. It needs no name once it is open. */
int load_open_file(void);

/* A xorshift generator, which no compiler can shorten and which never comes to 0 from another number. */
enum { LOAD_SEED = 0x12d687 };

static inline uint32_t load_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

/*
 * Memory of the kernel's, all zero; NULL if there is none. For what a load alone needs: what is static is a part of the agent,
 * which locks all of itself.
 */
void *load_map(size_t size);

/* Writes to every page of a region, and counts each MiB of it. */
void load_touch(char *region, size_t size, struct load_slot *slot);

/* Equal work in equal time, whatever a round of it takes; round_ns 0: as much as the kernel lets it. */
struct load_pace {
	int64_t due_ns, round_ns;
};

/* For rounds of `units` each, `rate` units in a second; 0: without a pace. */
struct load_pace load_pace(int64_t units, int64_t rate);

/* How long such a load rests on purpose: a round, or 0 if that is too short to be seen between two counts. */
int64_t load_rest_ns(int64_t units, int64_t rate);

/* Waits until the next round is due. What the kernel did not let it do is not made up for later. */
void load_await_round(struct load_pace *pace);

/* Fills in what was not given. */
void load_fill_in_presets(const struct load_option *options, struct load_order *order);

/* What is missing here for a load with nothing but presets, or NULL. */
const char *load_missing(const struct load *load, int cpus);

#endif
