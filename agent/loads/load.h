/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load disturbs on purpose: a file in loads/ that defines load_NAME. It runs in processes of its own, in a group of its
 * own that dies with the agent however the agent dies, and it counts its work where the agent can see it.
 */
#ifndef RTPROOF_LOAD_H
#define RTPROOF_LOAD_H

#include "system/folder.h"

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
	int cpus;                     /* CPUs that the load may use */
	struct load_slot *slots;
	const char *note;  /* how it goes here, for the record; prepare() may say it */
	const char *lack;  /* what it does less than it should, for the record; prepare() may say it */
	const struct folder *group; /* holds a program to its limits; NULL: there is none */
	bool patient;      /* nothing is measured meanwhile, so it goes on when another host does not answer for a while */
	bool last;         /* nobody of it gets a real-time priority: what measures has the lowest */
	int64_t rest_ns;   /* it may do no work for so long, on purpose; prepare() may say it */
	char *const *words; /* the command of a program of the system's, ends with NULL; NULL: the load is one of ours */
	char *why; /* of LOAD_WHY characters: what a load that fails writes here is told instead of its errno */
};

struct load {
	const char *name, *help;
	const char *unit;                   /* what is counted */
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

/* A load that is running, as the agent sees it. */
struct running_load {
	const struct load *load;
	struct load_order order;
	const char *name; /* of the load, or of the program */
	char given[LOAD_GIVEN]; /* what name, texts and words point into */
	char *words[LOAD_WORDS];
	int64_t restart_ns; /* it is killed and started again this often; 0: never */
	pid_t pid; /* also its process group */
	struct folder folder, group;
	uint32_t slots;
	uint32_t *seen; /* last reading of each slot */
	bool *worked;   /* which of them have counted anything since the first reading */
	bool read;
	int64_t work;   /* units since the start */
};

/* What every load takes besides its own options. */
extern const struct load_option load_common[];

/* "sched" or "sched:groups=4,restart=5s". 0, or -EINVAL with the reason as a sentence in why. */
int load_parse(const char *text, struct running_load *running, char *why, size_t room);

/* Parts of it, for those who have another way to name a load: they keep a text, and parse what follows a colon in it. */
int load_keep_text(const char *text, struct running_load *running, char *why, size_t room);
int load_parse_options(struct running_load *running, char *why, size_t room);

/* What its work is counted in. */
const char *load_unit(const struct running_load *running);

/* Fills in what was not given, counts the workers, and asks the load whether it can run here. 0, or a negative errno and why. */
int load_prepare(struct running_load *running, char *why, size_t room);

/* What is missing here for a load with nothing but presets, or NULL. */
const char *load_missing(const struct load *load, int cpus);

/*
 * 0 or a negative errno and why, such as -ENOMEM or -ENOSPC if the machine has not the room to spare. A load that fails later
 * ends, with the errno as its exit code.
 */
int load_start(struct running_load *running, char *why, size_t room);

/* Whether a load has ended by itself; then what is left of it is ended too, and why says why it died. */
bool load_died(struct running_load *running, char *why, size_t room);

/* What a load does in its own process. Returns when it fails: a negative errno. */
int load_be(struct running_load *running);

/* Reads the counters and answers the work done since the start. */
int64_t load_work(struct running_load *running);

/* Of its workers, each with a counter: how many have counted nothing since the first reading. */
int load_idle_parts(const struct running_load *running);

/* Kills the whole group and waits for it. */
void load_stop(struct running_load *running);

/*
 * Removes what agents left behind that were killed with all their processes, then starts all loads; and a moment for programs that
 * die at once. 0, or a negative errno and why: then they have to be stopped too.
 */
int loads_start(struct running_load *running, int count, char *why, size_t room);
void loads_stop(struct running_load *running, int count);

#endif
