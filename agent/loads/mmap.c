/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that map a large region, write to every page of it and unmap it, over and over. Giving many pages back at once
 * is a long way through the kernel, which one that can't be preempted goes to its end.
 */
#include "system/sys.h"

#include "system/clock.h"
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
	return load_share_memory(order, MIB, MIB_PRESET, order->values[WORKERS]);
}

/* Equal work in equal time, whatever a round takes; what the kernel did not let it do is not made up for later. */
static int64_t sleep_until(int64_t due_ns)
{
	int64_t now_ns = clock_now_ns();

	if (due_ns < now_ns)
		return now_ns;
	sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due_ns);
	return due_ns;
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	size_t size = (size_t)order->values[MIB] * LOAD_MIB;
	int64_t round_ns = order->values[RATE] ? order->values[MIB] * NS_PER_SECOND / order->values[RATE] : 0;

	for (int64_t due_ns = clock_now_ns();;) {
		char *region = load_map(size);

		if (!region)
			return -ENOMEM;
		load_touch(region, size, slot);
		munmap(region, size);
		if (round_ns)
			due_ns = sleep_until(due_ns + round_ns);
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
