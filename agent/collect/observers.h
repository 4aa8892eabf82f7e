/* SPDX-License-Identifier: Apache-2.0 */
/* Who watches the system while it works: counters of perf, and programs of BPF in the kernel. */
#ifndef RTPROOF_OBSERVERS_H
#define RTPROOF_OBSERVERS_H

#include "record/bytes.h"

/* Lines "PID COMM EVENTS" of the processes that have events of perf open. */
int collect_perf_users(struct bytes *text, int pid);

/* Lines "ID TYPE NAME" of the programs of BPF, TYPE by the kernel's number, NAME "-" of one without. Needs Linux 4.13. */
int collect_bpf_programs(struct bytes *text, int pid);

#endif
