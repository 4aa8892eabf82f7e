/* SPDX-License-Identifier: Apache-2.0 */
/* Busy processes, by default one for each CPU: keeps every CPU out of idle and every time slice in use. */
#include "../load.h"

#include <stddef.h>

enum { WORKERS };

static const struct load_option options[] = {
	{ "workers", "busy processes (default: one for each CPU)", 1, LOAD_SLOTS },
	{ NULL, NULL, 0, 0 },
};

static uint32_t slots(const struct load_order *order)
{
	return (uint32_t)(order->values[WORKERS] > 0 ? order->values[WORKERS] : order->cpus);
}

/* One unit is 65,536 steps of a xorshift generator, which no compiler can shorten. */
static void burn(struct load_slot *slot)
{
	uint32_t x = 2463534242U;

	for (;;) {
		for (uint32_t i = 0; i < 65536; i++) {
			x ^= x << 13;
			x ^= x >> 17;
			x ^= x << 5;
		}
		slot->work += x != 0;
	}
}

static int run(struct load_order *order)
{
	for (uint32_t i = 0; i < slots(order); i++) {
		pid_t pid = load_fork();

		if (pid < 0)
			return pid;
		if (pid == 0)
			burn(&order->slots[i]);
	}
	return load_wait_for_children();
}

const struct load load_cpu = {
	.name = "cpu",
	.help = "busy loops in user space",
	.unit = "65536 steps",
	.options = options,
	.slots = slots,
	.run = run,
};
