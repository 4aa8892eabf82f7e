/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells of the process that the audit is about. */
#ifndef RTPROOF_COLLECT_PROCESS_H
#define RTPROOF_COLLECT_PROCESS_H

#include "record/bytes.h"

/* Files of its folder as they are. */
int collect_process_status(struct bytes *text, int pid);
int collect_process_stat(struct bytes *text, int pid);
int collect_process_limits(struct bytes *text, int pid);
int collect_process_cgroup(struct bytes *text, int pid);
int collect_process_numa_maps(struct bytes *text, int pid);

/*
 * Lines "NAME KIND SIZE_KB RSS_KB LOCKED_KB" of its mappings. KIND: heap, stack, file or anonymous. NAME: "-" of one without, and may
 * have spaces. LOCKED_KB: "-" if the kernel does not tell. The kernel's own mappings, such as vdso, are left out.
 */
int collect_process_maps(struct bytes *text, int pid);

#endif
