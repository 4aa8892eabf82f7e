/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cycle probe: article 2's periodic loop, in user space. It stands for the loop in the kernel where no module can be
 * loaded, and never leaves out a due time: a late loop runs at once, again and again, until it has caught up.
 */
#include "system/sys.h"

#include "probes/common/cycles.h"
#include "system/clock.h"
#include "measure/worker.h"

#include <stdlib.h>

struct cycle {
	int64_t due_ns, period_ns;
};

static const struct method loop = {
	.name = "loop",
	.help = "clock_nanosleep() to each due time in turn; a late loop catches up",
	.on_grid = true,
	.loop = true,
};

static int cycle_check(const struct method *method, const char *const *values, int64_t period_ns, char *why, size_t room)
{
	(void)method;
	return band_check(values, period_ns, why, room);
}

static int cycle_open(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	struct cycle *cycle = malloc(sizeof(*cycle));

	(void)method;
	if (!cycle)
		return -ENOMEM;
	*cycle = (struct cycle){ first_due_ns, period_ns };
	worker->state = cycle;
	return 0;
}

static int cycle_take(struct worker *worker, struct activation *activation)
{
	struct cycle *cycle = worker->state;
	int err = sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, cycle->due_ns);

	if (err)
		return err;
	*activation = (struct activation){ cycle->due_ns, { clock_now_ns() - cycle->due_ns }, 0, 0 };
	cycle->due_ns += cycle->period_ns;
	return 0;
}

static void cycle_close(struct worker *worker)
{
	free(worker->state);
	worker->state = NULL;
}

static const struct method *const methods[] = { &loop, NULL };
static const struct probe_option options[] = { BAND_OPTIONS, { NULL, NULL } };

const struct probe probe_cycle = {
	.name = "cycle",
	.help = "lengths of the cycles of a periodic loop in user space, a proxy of the kernel's own (probe kernel, method loop)",
	.proxy_of = "the kernel's own loop (probe kernel, method loop): this one runs in user space, and each wake-up has to get there",
	.field = "wake",
	.unit = "ns",
	.methods = methods,
	.options = options,
	.check = cycle_check,
	.open = cycle_open,
	.take = cycle_take,
	.close = cycle_close,
};
