/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of CPUs, large enough for any machine: raw system calls, because libc's cpu_set_t ends at 1,024. */
#ifndef RTPROOF_CPUS_H
#define RTPROOF_CPUS_H

#include <stdbool.h>
#include <stddef.h>

enum { CPUS_MOST = 4096, CPUS_TEXT = 1024 };

struct cpus {
	unsigned long bits[CPUS_MOST / (8 * sizeof(unsigned long))];
};

bool cpus_has(const struct cpus *cpus, int cpu);
void cpus_add(struct cpus *cpus, int cpu);
void cpus_remove(struct cpus *cpus, int cpu);
void cpus_add_all(struct cpus *cpus, const struct cpus *more);
int cpus_count(const struct cpus *cpus);

/* The n-th CPU of the set in increasing order, from 0; -1 if there are not so many. */
int cpus_nth(const struct cpus *cpus, int n);

/* "0-3,5". 0 or -EINVAL. And back; what does not fit ends in "...". */
int cpus_parse(const char *text, struct cpus *cpus);
void cpus_format(const struct cpus *cpus, char *text, size_t room);

/* Affinity of a thread (0: the calling one). 0 or -errno. */
int cpus_get_affinity(int thread, struct cpus *cpus);
int cpus_set_affinity(int thread, const struct cpus *cpus);

/*
 * The CPUs that the calling thread can be bound to: those of `own`, its affinity, and those of `asked` that the kernel gives it on
 * trial. Isolated CPUs (isolcpus=) are in no affinity until somebody asks for them. The thread has its own affinity again afterwards.
 * Asks the kernel only if `asked` has a CPU that `own` has not. 0, or -errno if the kernel refused the trial.
 */
int cpus_reach(const struct cpus *own, const struct cpus *asked, struct cpus *reached);

/* Whether a CPU is on line: 1 or 0; -1 if the system does not tell. */
int cpus_on_line(int cpu);

#endif
