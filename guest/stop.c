/* SPDX-License-Identifier: Apache-2.0
 * QEMU's clock jumps to its next timer whenever no processor has work. A processor that stops itself has none, and
 * before QEMU notes that the whole machine has stopped, the clock may jump or not, as its threads happen to come. So a
 * watchdog stops the machine while the processor idles: one thread of QEMU then runs the timer, and stops all.
 *
 * The watchdog is Intel's i6300ESB (datasheet 300641, chapter 16); all its numbers below are from there. */
#include "stop.h"

#include "pci.h"

#include <stdint.h>
#include <time.h>

#define VENDOR 0x8086
#define DEVICE 0x25ab
#define CONFIG 0x60
#define CONFIG_NO_INTERRUPT 3
#define LOCK 0x68
#define LOCK_ENABLE 2
#define RELOAD (0xc / 2)

/* Two stages of 15 steps of 32768 PCI clocks, 29.5 ms in all: far from any tick of 100, 250, 300 or 1000 Hz. */
#define STEPS 15
#define LONGER_NS 100000000

static void set_stage(volatile uint32_t *region, unsigned stage)
{
	volatile uint16_t *words = (volatile uint16_t *)region;
	words[RELOAD] = 0x80;
	words[RELOAD] = 0x86;
	region[stage] = STEPS;
}

static uint64_t coarse_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* That clock goes on with the tick. */
static void wait_for_tick(void)
{
	for (uint64_t begin = coarse_now_ns(); coarse_now_ns() == begin;)
		;
}

int stop_machine(void)
{
	struct pci pci;
	size_t size;
	volatile uint32_t *region = pci_find(&pci, VENDOR, DEVICE) ? pci_map(&pci, 0, &size) : NULL;
	uint16_t config = CONFIG_NO_INTERRUPT;
	uint8_t lock = LOCK_ENABLE;
	if (!region || !pci_configure(&pci, CONFIG, &config, sizeof config))
		return 0;
	set_stage(region, 0);
	set_stage(region, 1);
	wait_for_tick();
	if (!pci_configure(&pci, LOCK, &lock, sizeof lock))
		return 0;
	nanosleep(&(struct timespec){.tv_nsec = LONGER_NS}, NULL);
	return 1;
}
