/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the system, and of one process: policy, priority, CPUs. */
#ifndef RTPROOF_TASKS_H
#define RTPROOF_TASKS_H

#include "record/bytes.h"

/*
 * A line of names, then one for each thread: PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS COMM. CLS as `ps -c` has it, CPUS the list of
 * those that are allowed, FLAGS the kernel's PF_ bits; a kernel thread's name stands in brackets, "-" where nothing applies.
 */
int collect_tasks(struct bytes *text, int pid);

/* The same of the process pid alone, with a column SLACK before COMM: the timer slack in ns. */
int collect_process_threads(struct bytes *text, int pid);

/* Lines "TID MINFLT MAJFLT" of the process pid: the page faults so far. */
int collect_process_faults(struct bytes *text, int pid);

#endif
