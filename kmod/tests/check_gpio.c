// SPDX-License-Identifier: GPL-2.0-only
/* The loop-back chip (gpio=1) through the kernel's own interfaces. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The chip's file; -1: there is none. */
static int open_chip(void)
{
	char path[32];

	for (int i = 0; i < 32; i++) {
		struct gpiochip_info info = { 0 };
		int chip;

		snprintf(path, sizeof(path), "/dev/gpiochip%d", i);
		chip = open(path, O_RDWR | O_CLOEXEC);
		if (chip < 0)
			continue;
		if (!ioctl(chip, GPIO_GET_CHIPINFO_IOCTL, &info) && !strcmp(info.label, "rtproof-loop") && info.lines == 8)
			return chip;
		close(chip);
	}
	skip("no such chip: module loaded without gpio=1");
	return -1;
}

static int line(int chip, uint32_t offset, uint64_t flags)
{
	struct gpio_v2_line_request request = { .offsets = { offset }, .num_lines = 1, .consumer = "check", .config.flags = flags };

	return ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &request) ? -1 : request.fd;
}

static bool set(int output, int value)
{
	struct gpio_v2_line_values values = { .bits = (uint64_t)value, .mask = 1 };

	return !ioctl(output, GPIO_V2_LINE_SET_VALUES_IOCTL, &values);
}

static int get(int input)
{
	struct gpio_v2_line_values values = { .mask = 1 };

	return ioctl(input, GPIO_V2_LINE_GET_VALUES_IOCTL, &values) ? -1 : (int)values.bits;
}

/* Reads within a second, or nothing. */
static bool next(int input, void *event, size_t size)
{
	struct pollfd entry = { .fd = input, .events = POLLIN };

	return poll(&entry, 1, 1000) == 1 && read(input, event, size) == (ssize_t)size;
}

static bool is_quiet(int input)
{
	struct pollfd entry = { .fd = input, .events = POLLIN };

	return poll(&entry, 1, 20) == 0;
}

#define BOTH (GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_EDGE_FALLING)

static void edges_of(int chip, uint32_t from)
{
	int output = line(chip, from, GPIO_V2_LINE_FLAG_OUTPUT);
	int input = line(chip, from + 1, BOTH);

	for (int value = 1; value < 9; value++) {
		struct gpio_v2_line_event event = { 0 };
		uint64_t before = now_ns();

		EXPECT(set(output, value & 1));
		EXPECT(next(input, &event, sizeof(event)));
		EXPECT(event.id == (value & 1 ? GPIO_V2_LINE_EVENT_RISING_EDGE : GPIO_V2_LINE_EVENT_FALLING_EDGE));
		EXPECT(event.timestamp_ns >= before && event.timestamp_ns <= now_ns());
		EXPECT(event.seqno == (uint32_t)value);
		EXPECT(get(input) == (value & 1));
	}
	EXPECT(set(output, 0) && is_quiet(input));
	close(output);
	close(input);
}

static void edges(void)
{
	int chip = open_chip();

	if (chip < 0)
		return;
	for (uint32_t from = 0; from < 6; from += 2)
		edges_of(chip, from);
	close(chip);
}

static void one_kind(void)
{
	struct gpio_v2_line_event event = { .id = 0 };
	int chip = open_chip(), output, input;

	if (chip < 0)
		return;
	output = line(chip, 2, GPIO_V2_LINE_FLAG_OUTPUT);
	input = line(chip, 3, GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_FALLING);
	EXPECT(set(output, 1) && is_quiet(input));
	EXPECT(set(output, 0) && next(input, &event, sizeof(event)));
	EXPECT(event.id == GPIO_V2_LINE_EVENT_FALLING_EDGE);
	close(output);
	close(input);
	close(chip);
}

/* The first version of the interface. */
static void first_version(void)
{
	struct gpioevent_request input = { .lineoffset = 5, .handleflags = GPIOHANDLE_REQUEST_INPUT,
					   .eventflags = GPIOEVENT_REQUEST_RISING_EDGE, .consumer_label = "check" };
	struct gpiohandle_request output = { .lineoffsets = { 4 }, .lines = 1, .flags = GPIOHANDLE_REQUEST_OUTPUT };
	struct gpiohandle_data high = { .values = { 1 } };
	struct gpioevent_data event;
	int chip = open_chip();

	if (chip < 0)
		return;
	EXPECT(ioctl(chip, GPIO_GET_LINEEVENT_IOCTL, &input) == 0);
	EXPECT(ioctl(chip, GPIO_GET_LINEHANDLE_IOCTL, &output) == 0);
	EXPECT(ioctl(output.fd, GPIOHANDLE_SET_LINE_VALUES_IOCTL, &high) == 0);
	EXPECT(next(input.fd, &event, sizeof(event)) && event.id == GPIOEVENT_EVENT_RISING_EDGE);
	close(input.fd);
	close(output.fd);
	close(chip);
}

static int inject(const char *text)
{
	int file = open("/sys/module/rtproof/parameters/inject", O_WRONLY);
	int error = error_of(file < 0 ? -1 : (int)write(file, text, strlen(text)));

	close(file);
	return error;
}

static void injected(void)
{
	struct gpio_v2_line_event event;
	int chip = open_chip(), input, output;

	if (chip < 0)
		return;
	input = line(chip, 7, BOTH);
	output = line(chip, 6, GPIO_V2_LINE_FLAG_OUTPUT);
	EXPECT(inject("7 1\n") == 0);
	EXPECT(next(input, &event, sizeof(event)) && event.id == GPIO_V2_LINE_EVENT_RISING_EDGE);
	EXPECT(inject("7 1") == 0 && is_quiet(input));
	EXPECT(inject("7 0") == 0);
	EXPECT(next(input, &event, sizeof(event)) && event.id == GPIO_V2_LINE_EVENT_FALLING_EDGE);
	EXPECT(inject("6 1") == EPERM);
	EXPECT(inject("8 1") == EINVAL && inject("7 2") == EINVAL && inject("7") == EINVAL);
	EXPECT(inject("7 1 1") == EINVAL && inject("-1 1") == EINVAL && inject("x") == EINVAL);
	close(input);
	close(output);
	close(chip);
}

static void unload(void)
{
	int chip = open_chip(), input;

	if (chip < 0)
		return;
	input = line(chip, 7, GPIO_V2_LINE_FLAG_INPUT);
	EXPECT(error_of((int)syscall(SYS_delete_module, "rtproof", O_NONBLOCK)) == EWOULDBLOCK);
	close(input);
	close(chip);
}

const struct check gpio_checks[] = {
	{ "gpio-edges", edges }, { "gpio-one-kind", one_kind }, { "gpio-first-version", first_version },
	{ "gpio-injected", injected }, { "gpio-unload", unload }, { 0 },
};
