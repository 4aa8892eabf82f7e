/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The foreign probe: the threads of others are measured, by the kernel's trace alone. This thread only looks whether their process
 * is still there; the desk finds their activations in the trace.
 */
#include "system/sys.h"

#include "measure/worker.h"
#include "system/clock.h"
#include "system/processes.h"
#include "system/text.h"

#include <stdio.h>
#include <stdlib.h>

enum { PID, TID, THREAD };
enum { LOOK_NS = 200000000, PID_MOST = 1 << 22 };

struct foreign {
	struct process process; /* pid 0: none is watched */
	int64_t end_ns;         /* of the run */
};

static const struct probe_option options[] = {
	{ "pid", "the process: its real-time threads are measured, and the run ends with it" },
	{ "tid", "threads by their numbers, with + between, for the desk" },
	{ "thread", "threads by their names, with + between, for the desk" },
	{ NULL, NULL },
};

static int foreign_check(const struct method *method, const char *const *values, int64_t period_ns, char *why, size_t room)
{
	struct process process;
	int64_t pid;

	(void)method;
	(void)period_ns;
	if (!values[PID])
		return 0;
	if (text_number(values[PID], 1, PID_MOST, &pid))
		return text_refuse(why, room, -EINVAL, "pid takes the number of a process, not '%.20s'", values[PID]);
	if (processes_look((pid_t)pid, &process))
		return text_refuse(why, room, -EINVAL, "there is no process %lld", (long long)pid);
	return 0;
}

/* It waits, so it goes out of the way of what is measured. */
static int foreign_open(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	struct foreign *foreign = calloc(1, sizeof(*foreign));

	(void)method;
	worker->state = foreign;
	if (!foreign)
		return -ENOMEM;
	first_due_ns += worker->warmup_ns / period_ns * period_ns;
	foreign->end_ns = worker->duration_ns == INT64_MAX ? INT64_MAX : first_due_ns + worker->duration_ns;
	worker->warmup_ns = 0;
	worker->policy = POLICY_OTHER;
	worker->priority = 0;
	sys_set_policy(0, POLICY_OTHER, 0);
	cpus_set_affinity(0, worker->cpus);
	return worker->options[PID] ? processes_look(atoi(worker->options[PID]), &foreign->process) : 0;
}

/* A number that was given again belongs to another process, which began later. */
static int foreign_take(struct worker *worker, struct activation *activation)
{
	const struct foreign *foreign = worker->state;
	int64_t left_ns = foreign->end_ns - clock_now_ns();

	(void)activation;
	sys_sleep(CLOCK_MONOTONIC, 0, left_ns < 0 ? 0 : left_ns < LOOK_NS ? left_ns : LOOK_NS);
	if (clock_now_ns() >= foreign->end_ns)
		word_store(&worker->stop, 1); /* nothing comes that would be due later */
	if (!foreign->process.pid || processes_live(foreign->process.pid, foreign->process.started))
		return -EINTR;
	worker->ended = true;
	snprintf(worker->why, sizeof(worker->why), "process %d has ended", (int)foreign->process.pid);
	return -EINTR;
}

static void foreign_close(struct worker *worker)
{
	worker->left_ns = 0;
	free(worker->state);
}

static const struct method trace = {
	.name = "trace",
	.help = "the kernel's events tell when each thread was due and when it ran",
	.external = true,
	.from_outside = true,
	.single = true,
	.no_deadline = true,
	.collects = true,
	.no_timer = true,
};
static const struct method *const methods[] = { &trace, NULL };

const struct probe probe_foreign = {
	.name = "foreign",
	.help = "threads of others, by the kernel's trace alone: rtproof explain --pid finds their activations at the desk",
	.field = "latency",
	.unit = "ns",
	.methods = methods,
	.options = options,
	.check = foreign_check,
	.open = foreign_open,
	.take = foreign_take,
	.close = foreign_close,
};
