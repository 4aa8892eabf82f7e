// SPDX-License-Identifier: GPL-2.0-only
/*
 * rtproof_deep_idle: stands for a deep idle state. It is a cpuidle driver whose second state takes
 * exit_us to leave: an interrupt that ends it has to wait so long. The first state takes no time. So
 * whatever keeps the CPUs from idle states makes the next thread earlier.
 *
 * A halted CPU of x86 wakes only by an interrupt that it takes at once. So the state does not halt:
 * it waits awake, with interrupts off, for the next timer, and then exit_us longer. Any other
 * interrupt waits as long. If the next timer is more than MOST_US away, the CPU halts, because a
 * guest takes long to wait awake. It needs a kernel with cpuidle and without another driver.
 */
#include <linux/cpuidle.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/module.h>

#define MOST_US 1200
#define TURNS 500 /* between two looks at the clock, which take a guest much longer */

static unsigned int exit_us = 60;
module_param(exit_us, uint, 0444);
MODULE_PARM_DESC(exit_us, "how long the deep state takes to leave, at most 1000 us");

static int halt_cpu(struct cpuidle_device *device, struct cpuidle_driver *driver, int state)
{
	asm volatile("sti; hlt; cli" ::: "memory");
	return state;
}

static int be_deep(struct cpuidle_device *device, struct cpuidle_driver *driver, int state)
{
	ktime_t end = ktime_add_us(device->next_hrtimer, exit_us);

	int i;

	if (ktime_us_delta(end, ktime_get()) > MOST_US + exit_us)
		return halt_cpu(device, driver, state);
	while (ktime_before(ktime_get(), end))
		for (i = 0; i < TURNS; i++)
			barrier();
	return state;
}

static struct cpuidle_driver deep_driver = {
	.name = "rtproof_deep", /* without owner, or this module could never be removed */
	.states = { {
		.name = "HALT",
		.desc = "takes no time to leave",
		.enter = halt_cpu,
	}, {
		.name = "DEEP",
		.desc = "takes long to leave",
		.target_residency = 1,
		.enter = be_deep,
	} },
	.state_count = 2,
};

static int __init deep_begin(void)
{
	if (!exit_us || exit_us > 1000)
		return -EINVAL;
	deep_driver.states[1].exit_latency = exit_us;
	deep_driver.states[1].target_residency = exit_us;
	return cpuidle_register(&deep_driver, NULL);
}

static void __exit deep_end(void)
{
	cpuidle_unregister(&deep_driver);
}

module_init(deep_begin);
module_exit(deep_end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A stand-in of a deep idle state");
