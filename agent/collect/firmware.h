/* SPDX-License-Identifier: Apache-2.0 */
/* What is below the kernel: firmware that interrupts the CPUs, and a hypervisor. */
#ifndef RTPROOF_COLLECT_FIRMWARE_H
#define RTPROOF_COLLECT_FIRMWARE_H

#include "record/bytes.h"

/* Lines "cpuN COUNT" of system management interrupts, of each CPU that is online. -ENODEV: no CPU of Intel; -ENOENT: no module msr. */
int collect_smi(struct bytes *text, int pid);

/* Lines of what tells of a hypervisor: "cpuid NAME", "device-tree NAME", "psci hvc"; "none" if nothing does. */
int collect_hypervisor(struct bytes *text, int pid);

#endif
