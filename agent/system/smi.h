/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the firmware took a CPU away: the counter of system management interrupts that Intel's CPUs have since 2008. To read it, the
 * kernel interrupts that CPU for a moment.
 */
#ifndef RTPROOF_SMI_H
#define RTPROOF_SMI_H

#include <stddef.h>
#include <stdint.h>

enum { SMI_CPUS = 256 };

struct smi_counts {
	int fds[SMI_CPUS]; /* of each of the CPUs, in their order; or -1 */
	int n;
};

/*
 * Opens the counters of these CPUs. folder: "/dev/cpu"; cpuinfo: "/proc/cpuinfo". 0 if all of them can be read; else -errno of the first
 * that can't, with the reason in why, and none is open.
 */
int smi_open(struct smi_counts *smi, const char *folder, const char *cpuinfo, const int *cpus, int n, char *why, size_t room);

/* The counter of the CPU at this place of the list; -1: it can't be read. */
int64_t smi_read(const struct smi_counts *smi, int place);

void smi_close(struct smi_counts *smi);

#endif
