/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire's end in a guest of tests/test_two_guests.py: edges of line 1 of the module's chip, which line 0 drives, go to a serial
 * port, and what comes from there drives line 7. A byte is an edge: '1' to the high level, '0' to the low one.
 */
#include <fcntl.h>
#include <linux/gpio.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

enum { WATCHED = 1, PRIORITY = 95 };

static int watched_line(const char *chip)
{
	struct gpio_v2_line_request request = {
		.offsets = { WATCHED }, .consumer = "bridge", .num_lines = 1,
		.config.flags = GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_EDGE_FALLING,
	};
	int file = open(chip, O_RDWR | O_CLOEXEC);

	return file < 0 || ioctl(file, GPIO_V2_GET_LINE_IOCTL, &request) ? -1 : request.fd;
}

static int serial_port(const char *path)
{
	struct termios settings;
	int file = open(path, O_RDWR | O_NOCTTY);

	if (file < 0 || tcgetattr(file, &settings))
		return -1;
	cfmakeraw(&settings);
	settings.c_cflag |= CLOCAL;
	cfsetspeed(&settings, B115200);
	return tcsetattr(file, TCSANOW, &settings) ? -1 : file;
}

static int send_edge(int line, int port)
{
	struct gpio_v2_line_event event;

	if (read(line, &event, sizeof(event)) != sizeof(event))
		return -1;
	return write(port, event.id == GPIO_V2_LINE_EVENT_RISING_EDGE ? "1" : "0", 1) == 1 ? 0 : -1;
}

static int take_edges(int port, int inject)
{
	char bytes[64], text[] = "7 0";
	ssize_t n = read(port, bytes, sizeof(bytes));

	for (ssize_t i = 0; i < n; i++) {
		text[2] = bytes[i];
		if (pwrite(inject, text, 3, 0) != 3)
			perror("inject");
	}
	return n > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	/* musl has no sched_setscheduler() */
	struct sched_param priority = { .sched_priority = PRIORITY };

	if (argc != 3 || syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &priority))
		return 2;
	struct pollfd files[] = { { watched_line(argv[1]), POLLIN, 0 }, { serial_port(argv[2]), POLLIN, 0 } };
	int inject = open("/sys/module/rtproof/parameters/inject", O_WRONLY);

	if (files[0].fd < 0 || files[1].fd < 0 || inject < 0) {
		perror("bridge");
		return 2;
	}
	while (poll(files, 2, -1) > 0) {
		if (files[0].revents && send_edge(files[0].fd, files[1].fd))
			break;
		if (files[1].revents && take_edges(files[1].fd, inject))
			break;
	}
	perror("bridge");
	return 1;
}
