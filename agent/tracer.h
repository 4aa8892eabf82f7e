/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's timerlat tracer, switched on for all measured CPUs by the first thread that wants it and off by the last. It runs
 * in an instance of tracefs of its own, rtproof-PID, where the kernel allows that (Linux 5.16), else at the top. Everything is
 * put back at the end, by a process apart (undo.h), so also after SIGKILL. What even that could not remove, the next start does.
 */
#ifndef RTPROOF_TRACER_H
#define RTPROOF_TRACER_H

#include "cpus.h"

enum { TRACER_PATH = 160 };

/* Whose task the tracer wakes: its own ones, or whoever reads timerlat_fd. */
enum tracer_task { TRACER_KERNEL, TRACER_USER };

/* One sentence, or NULL if the tracer can be had. */
const char *tracer_unsupported(enum tracer_task task);

/*
 * For one CPU of those that are measured: 0 or -errno with what failed in *failed_at. A call that succeeds needs a tracer_stop();
 * until then nobody else can have that CPU.
 */
int tracer_start(enum tracer_task task, const struct cpus *cpus, int cpu, int64_t period_ns, const char **failed_at);
void tracer_stop(int cpu);

/* A file of one CPU in the tracer's instance, such as trace_pipe. Only while it is on. */
void tracer_cpu_path(int cpu, const char *file, char path[TRACER_PATH]);

/* That of timerlat_fd. */
void tracer_user_path(int cpu, char path[TRACER_PATH]);

/* Id of the kernel's timerlat task on a CPU, or -ESRCH. */
int tracer_task_id(int cpu);

#endif
