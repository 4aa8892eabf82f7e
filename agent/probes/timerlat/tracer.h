/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's timerlat tracer. The first thread that needs it switches it on for all measured CPUs, and the last one
 * switches it off. Where the kernel allows that (Linux 5.16), it runs in its own instance of tracefs, rtproof-PID, else at
 * the top of tracefs. A separate process (system/undo.h) restores everything at the end, even after SIGKILL; the next start
 * removes what that process could not. The second half of this file turns the lines that the tracer prints into activations.
 */
#ifndef RTPROOF_TRACER_H
#define RTPROOF_TRACER_H

#include "probes/probe.h"
#include "system/cpus.h"

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

/*
 * What the kernel's timerlat tracer prints, made into activations. For each activation it prints a line in each context, in this
 * order: the timer's interrupt, the thread it wakes and, with timerlat_fd, the program when it comes back for the next one
 * (Documentation/trace/timerlat-tracer.rst):
 *
 *     <idle>-0       [000] d.h1.     4.145437: #1     context    irq timer_latency       626 ns
 *      <...>-152     [000] ....1     4.145440: #1     context thread timer_latency      4010 ns
 *
 * Latencies are exact; due times are the stamp of the interrupt's line minus its latency, so late by what the kernel needs
 * from its clock reading to the stamp, and rounded to 1 us. They keep to the period, so the smallest of them holds for all.
 */

struct latency_line {
	uint32_t id;   /* of the activation; after 2^32 - 1 comes 0 */
	int context;   /* 0 interrupt, 1 thread, 2 user */
	int64_t time_ns, latency_ns;
};

/* False for what is no such line: remarks about lost lines, torn ones, other events. */
bool latency_line_parse(const char *text, struct latency_line *line);

struct latency_track {
	int fields; /* 2, or 3 with that of the user */
	int64_t period_ns;
	int seen;      /* contexts of the activation that is being read */
	uint32_t id;
	struct activation reading;
	bool holds;    /* one that is whole; how many due times were missed behind it only the next one tells */
	uint32_t held_id;
	struct activation held;
};

/* True if an activation came out. What has not all its lines counts as lost. */
bool latency_track_add(struct latency_track *track, const struct latency_line *line, struct activation *activation);

/* The activation that was held back for the next one, which will not come. */
bool latency_track_flush(struct latency_track *track, struct activation *activation);

#endif
