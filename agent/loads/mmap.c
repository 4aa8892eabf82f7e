/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that map a large region, write to every page of it and unmap it, over and over. Giving many pages back at once
 * is a long way through the kernel, which one that can't be preempted goes to its end.
 */
#include "system/sys.h"

#include "loads/load.h"

#include <sys/mman.h>

enum { WORKERS, MIB, RATE };
enum { MIB_PRESET = 64 };

static const struct load_option options[] = {
	{ "workers", "processes (default: one for each CPU)", 1, LOAD_SLOTS, LOAD_PER_CPU },
	{ "mib", "region of each in MiB (default: 64; all at most a quarter of the available memory)", 1, 1024, 0 },
	{ "rate", "MiB of each in a second (default: 0, as many as the kernel lets it)", 0, 1024 * 1024, 0 },
	{ NULL, NULL, 0, 0, 0 },
};

static int prepare(struct load_order *order)
{
	int error = load_share_memory(order, MIB, MIB_PRESET, order->values[WORKERS]);

	order->rest_ns = load_rest_ns(order->values[MIB], order->values[RATE]);
	return error;
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	size_t size = (size_t)order->values[MIB] * LOAD_MIB;
	struct load_pace pace = load_pace(order->values[MIB], order->values[RATE]);

	for (;;) {
		char *region = load_map(size);

		if (!region)
			return -ENOMEM;
		load_touch(region, size, slot);
		munmap(region, size);
		load_await_round(&pace);
	}
}

const struct load load_mmap = {
	.name = "mmap",
	.help = "large regions mapped, written to and unmapped",
	.unit = "MiB",
	.options = options,
	.prepare = prepare,
	.work = work,
};
