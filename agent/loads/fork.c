/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that start children, a few at a time, and wait for their end. A child writes to memory that it shares with its
 * parent until then, so page tables and pages are copied and given back all the time.
 */
#include "system/sys.h"

#include "loads/load.h"

#include <sys/wait.h>

enum { WORKERS, CHILDREN, MIB };
enum { CHILDREN_PRESET = 8, MIB_PRESET = 2 };

static const struct load_option options[] = {
	{ "workers", "processes that start children (default: one for each CPU)", 1, LOAD_SLOTS, LOAD_PER_CPU },
	{ "children", "of each at a time (default: 8)", 1, 256, CHILDREN_PRESET },
	{ "mib", "memory that each child writes to, in MiB (default: 2; all at most a quarter of the available memory)", 1,
	  1024, 0 },
	{ NULL, NULL, 0, 0, 0 },
};

static int prepare(struct load_order *order)
{
	return load_share_memory(order, MIB, MIB_PRESET, order->values[WORKERS] * (order->values[CHILDREN] + 1));
}

/* A child that was killed has lost a worker its work; one that ended has touched all. */
static int await_children(int64_t count, struct load_slot *slot)
{
	for (int status; count > 0; count--) {
		while (wait(&status) < 0)
			if (errno != EINTR)
				return -errno;
		if (status)
			return -ECHILD;
		slot->work++;
	}
	return 0;
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	size_t size = (size_t)order->values[MIB] * LOAD_MIB;
	char *region = load_map(size);
	struct load_slot uncounted = { .work = 0 };
	int err = region ? 0 : -ENOMEM;

	if (!err)
		load_touch(region, size, &uncounted);
	while (!err) {
		for (int64_t i = 0; i < order->values[CHILDREN]; i++) {
			pid_t pid = load_spawn();

			if (pid < 0)
				return pid;
			if (pid > 0)
				continue;
			load_touch(region, size, &uncounted);
			_exit(0);
		}
		err = await_children(order->values[CHILDREN], slot);
	}
	return err;
}

const struct load load_fork = {
	.name = "fork",
	.help = "processes that start, write to their memory and end",
	.unit = "processes",
	.options = options,
	.prepare = prepare,
	.work = work,
};
