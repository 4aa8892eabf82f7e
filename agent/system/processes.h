/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and threads as /proc shows them: all processes that one process has started, and the state of one thread. */
#ifndef RTPROOF_PROCESSES_H
#define RTPROOF_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { BOOT_ID_ROOM = 40 };

struct process {
	pid_t pid, parent, session;
	int64_t cpu_ticks; /* its own, and of its children that it has waited for */
	int64_t waited_ticks; /* of the latter alone */
	int64_t pages;     /* of memory, shared ones included */
	int64_t started;   /* clock ticks from boot to its start: no two processes of one number have the same */
	char state;        /* as proc(5) has it: Z and X have ended */
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

/*
 * CPU time, in milliseconds, of all that the root has started, now and before; and if asked for of the root itself. Reads all
 * of /proc. A negative errno if it can't.
 */
int64_t processes_cpu_ms(pid_t root, bool root_too);

/* This boot's id (proc_sys_kernel(5), random/boot_id); "none" on a kernel without one. */
void boot_id(char id[BOOT_ID_ROOM]);

/* SIGKILL to each. How many there were, or a negative errno. */
int processes_kill(pid_t root);

/* The calling process as /proc has it, also when it sees itself otherwise from a PID namespace. 0 or a negative errno. */
int processes_self(struct process *self);

/* Any process, as /proc has it. 0 or a negative errno. */
int processes_look(pid_t pid, struct process *process);

/* Whether the process of that number still lives that started then. What cannot be seen is taken to live. */
bool processes_live(pid_t pid, int64_t started);

/* What /proc/PID/task/TID/stat says of a thread. */

struct taskstat {
	char name[64];
	bool of_kernel;
	int nice, cpu, priority, policy; /* priority: real-time, 0 without; policy by its kernel number */
	int parent;
	uint32_t flags; /* the kernel's PF_ bits */
	long minor_faults, major_faults;
};

/* Reads such a text; false: it is none. Pure. */
bool taskstat_parse(const char *text, struct taskstat *stat);

/* 0 or -errno. */
int taskstat_read(const char *path, struct taskstat *stat);

/* The numbers in a folder of /proc, given as a DIR: one each time it is called, 0 at the end, and of NULL at once. */
int processes_next_number(void *folder);

/* Whether execvp() would find a program of this name. */
bool program_is_there(const char *name);

#endif
