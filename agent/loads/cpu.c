/* SPDX-License-Identifier: Apache-2.0 */
/* Busy processes, by default one for each CPU: keeps every CPU out of idle and every time slice in use. */
#include "loads/load.h"

#include <stddef.h>

static const struct load_option options[] = {
	{ "workers", "busy processes (default: one for each CPU)", 1, LOAD_SLOTS, LOAD_PER_CPU },
	{ NULL, NULL, 0, 0, 0 },
};

/* One unit is 65,536 steps of a xorshift generator, which no compiler can shorten and which never comes to 0. */
static int work(const struct load_order *order, struct load_slot *slot)
{
	uint32_t x = LOAD_SEED;

	(void)order;
	for (; x; slot->work++)
		for (uint32_t i = 0; i < 65536; i++)
			load_random(&x);
	return 0;
}

const struct load load_cpu = {
	.name = "cpu",
	.help = "busy loops in user space",
	.unit = "65536 steps",
	.options = options,
	.work = work,
};
