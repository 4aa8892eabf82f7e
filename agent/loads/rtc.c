/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for the periodic interrupts of the real-time clock and does a little work at each. The driver stops them when its file
 * is closed, so also after the death of this process; the rate stays, and means nothing to a user who sets its own. Since Linux
 * 2.6.39 the kernel's own timers may stand in for the chip.
 */
#include "system/sys.h"

#include "loads/load.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

enum { HZ };
enum { STEPS = 4096, COUNT_SHIFT = 8 };

/* As in the kernel's rtc.h. */
#define CLOCK_ENABLE _IO('p', 0x05)
#define CLOCK_READ_RATE _IOR('p', 0x0b, unsigned long)
#define CLOCK_SET_RATE _IOW('p', 0x0c, unsigned long)

static const struct load_option options[] = {
	{ "hz", "interrupts a second, a power of two (default: 1024)", 2, 8192, 1024 },
	{ NULL, NULL, 0, 0, 0 },
};

static uint32_t slots(const struct load_order *order)
{
	(void)order;
	return 1;
}

static int open_clock(void)
{
	int fd = open("/dev/rtc0", O_RDONLY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		fd = open("/dev/rtc", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int set_rate(int fd, unsigned long hz)
{
	return ioctl(fd, CLOCK_SET_RATE, hz) < 0 ? -errno : 0;
}

/* Sets the rate, to see whether that is allowed, and sets it back. */
static const char *unsupported(const struct load_order *order)
{
	static char why[LOAD_WHY];
	unsigned long before = 0;
	int fd = open_clock(), err = fd < 0 ? fd : ioctl(fd, CLOCK_READ_RATE, &before) < 0 ? -errno : 0;

	if (fd == -ENOENT || fd == -ENXIO || fd == -ENODEV)
		return "there is no /dev/rtc0 and no /dev/rtc";
	if (fd < 0)
		snprintf(why, sizeof(why), "the real-time clock can't be opened: %s", strerror(-fd));
	if (!err)
		err = set_rate(fd, (unsigned long)order->values[HZ]);
	if (fd >= 0 && err)
		snprintf(why, sizeof(why), "the real-time clock gives no %lld interrupts a second: %s",
			 (long long)order->values[HZ], strerror(-err));
	if (before)
		set_rate(fd, before);
	close(fd);
	return err ? why : NULL;
}

/* The upper bits of what is read are the interrupts since the last reading. */
static int work(const struct load_order *order, struct load_slot *slot)
{
	int fd = open_clock(), err = fd < 0 ? fd : set_rate(fd, (unsigned long)order->values[HZ]);
	uint32_t x = LOAD_SEED;
	unsigned long events;

	if (err)
		return err;
	if (ioctl(fd, CLOCK_ENABLE, 0) < 0)
		return -errno;
	while (x && read(fd, &events, sizeof(events)) == sizeof(events)) {
		for (int i = 0; i < STEPS; i++)
			load_random(&x);
		slot->work += (uint32_t)(events >> COUNT_SHIFT);
	}
	return -errno;
}

const struct load load_rtc = {
	.name = "rtc",
	.help = "periodic interrupts of the real-time clock, with some work at each",
	.unit = "interrupts",
	.options = options,
	.unsupported = unsupported,
	.slots = slots,
	.work = work,
};
