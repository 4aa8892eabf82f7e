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
int cpus_count(const struct cpus *cpus);

/* The n-th CPU of the set in increasing order, from 0; -1 if there are not so many. */
int cpus_nth(const struct cpus *cpus, int n);

/* "0-3,5". 0 or -EINVAL. And back; what does not fit ends in "...". */
int cpus_parse(const char *text, struct cpus *cpus);
void cpus_format(const struct cpus *cpus, char *text, size_t room);

/* Affinity of a thread (0: the calling one). 0 or -errno. */
int cpus_get_affinity(int thread, struct cpus *cpus);
int cpus_set_affinity(int thread, const struct cpus *cpus);

#endif
