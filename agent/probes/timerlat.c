/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timerlat probe: the kernel's own tracer of that name measures how late its timer's interrupt is, how late the thread that
 * it wakes, and how late that thread is back in user space where it is one of ours.
 */
#include "system/sys.h"

#include "probes/timerlat/timerlat.h"
#include "measure/worker.h"

static const char *thread_unsupported(void)
{
	return tracer_unsupported(TRACER_KERNEL);
}

static const char *user_unsupported(void)
{
	return tracer_unsupported(TRACER_USER);
}

#define METHOD(method_name, text, task, reason)                                                                     \
	{ .name = (method_name), .help = (text), .external = true, .keeps_period = true, .in_us = true,             \
	  .no_deadline = true, .no_timer = true, .fields = timerlat_fields[task], .unsupported = (reason) }

static const struct method thread = METHOD("thread", "to the interrupt, and to the tracer's own kernel task", TRACER_KERNEL,
					   thread_unsupported);
static const struct method user = METHOD("user", "to the interrupt, to the agent's thread, and until it waits again",
					 TRACER_USER, user_unsupported);

static const struct method *choose(void)
{
	return user_unsupported() ? &thread : &user;
}

static const struct method automatic = {
	.name = "auto",
	.help = "user where the kernel has timerlat_fd (Linux 6.5), else thread",
	.fields = timerlat_fields[TRACER_USER],
	.unsupported = thread_unsupported,
	.choose = choose,
};

static int open_tracer(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	(void)first_due_ns; /* the kernel chooses it */
	return timerlat_open(worker, method == &user ? TRACER_USER : TRACER_KERNEL, period_ns);
}

static const struct method *const methods[] = { &automatic, &thread, &user, NULL };

const struct probe probe_timerlat = {
	.name = "timerlat",
	.help = "from a timer's due time to its interrupt and the thread it wakes, by the kernel's timerlat tracer",
	.field = "thread",
	.unit = "ns",
	.methods = methods,
	.open = open_tracer,
	.take = timerlat_take,
	.pending = timerlat_pending,
	.close = timerlat_close,
};
