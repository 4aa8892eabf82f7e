/* SPDX-License-Identifier: Apache-2.0 */
/* One load: what the user asked of it, what it does in its own process, and how much work it has done. */
#ifndef RTPROOF_RUNNING_H
#define RTPROOF_RUNNING_H

#include "loads/load.h"
#include "system/cpus.h"
#include "system/folder.h"

enum { LOAD_LABEL = 56 };

/* A load that is running, as the agent sees it. */
struct running_load {
	const struct load *load;
	struct load_order order;
	const char *name; /* of the load, or of the program; with its CPUs (mmap@0) if it is bound */
	bool bound;
	struct cpus cpus; /* all of its processes run on these, if it is bound */
	char label[LOAD_LABEL]; /* what the name of one that is bound points to */
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

/* "sched", "sched:groups=4,restart=5s" or, bound to CPUs, "sched:groups=4@0-2,5". 0, or -EINVAL with the reason as a sentence in why. */
int load_parse(const char *text, struct running_load *running, char *why, size_t room);

/* Parts of it, for those who have another way to name a load: they keep a text, and parse what follows a colon in it. */
int load_keep_text(const char *text, struct running_load *running, char *why, size_t room);
int load_parse_options(struct running_load *running, char *why, size_t room);

/* What its work is counted in. */
const char *load_unit(const struct running_load *running);

/* Binds the calling process to the load's CPUs, if it has any: what it starts runs there too. 0, or -errno with a sentence in order.why. */
int load_bind(const struct running_load *running);

/* What a load does in its own process. Returns when it fails: a negative errno. */
int load_become(struct running_load *running);

/* Reads the counters and answers the work done since the start. */
int64_t load_work(struct running_load *running);

/* Of its workers, each with a counter: how many have counted nothing since the first reading. */
int load_idle_parts(const struct running_load *running);

#endif
