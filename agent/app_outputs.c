/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "app_outputs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Of the agent's own instance of tracefs first, where that is what traces. */
static int open_marks(char *why, size_t room)
{
	static const char *const roots[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char path[96];
	int fd = -1;

	for (int i = 0; i < 4 && fd < 0; i++) {
		int used = snprintf(path, sizeof(path), "%s", roots[i % 2]);

		if (i < 2)
			used += snprintf(path + used, sizeof(path) - (size_t)used, "/instances/rtproof-%d", (int)getpid());
		snprintf(path + used, sizeof(path) - (size_t)used, "/trace_marker");
		fd = open(path, O_WRONLY | O_CLOEXEC);
	}
	if (fd < 0) {
		fd = -errno;
		snprintf(why, room, "marks can't be written to the kernel's trace: %s: %s; it needs root and a mounted tracefs", path,
			 strerror(-fd));
	}
	return fd;
}

static struct gpio_order order_of(const struct outputs_order *order, int output)
{
	return (struct gpio_order){ .chip = order->chip, .out = order->line[output], .no_in = true };
}

int outputs_look(const struct outputs_order *order, char *why, size_t room)
{
	int err = 0;

	for (int i = 0; i < OUTPUTS && order->lines && !err; i++) {
		struct gpio_order line = order_of(order, i);

		err = gpio_look(&line, why, room);
	}
	if (err || !order->marks)
		return err;
	int fd = open_marks(why, room);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

int outputs_open(struct outputs *outputs, const struct outputs_order *order, char *why, size_t room)
{
	int err = 0;

	outputs->order = *order;
	outputs->opened = 0;
	outputs->marks_fd = order->marks ? open_marks(why, room) : -1;
	if (order->marks && outputs->marks_fd < 0)
		return outputs->marks_fd;
	for (int i = 0; i < OUTPUTS && order->lines && !err; i++) {
		struct gpio_order line = order_of(order, i);

		err = gpio_open(&outputs->gpios[outputs->opened++], &line, why, room);
	}
	return err;
}

int outputs_set(struct outputs *outputs, enum output output, bool level)
{
	static const char *const marks[OUTPUTS][2] = { { "work 0", "work 1" }, { "sleep 0", "sleep 1" },
						       { "no-sleep 0", "no-sleep 1" } };
	const char *mark = marks[output][level];
	int err = 0;

	if (!outputs->order.wanted)
		return 0;
	outputs->pulses[output] += level;
	if (outputs->order.lines)
		err = gpio_drive(&outputs->gpios[output], level);
	/* A mark that finds no room in the trace is not worth a failed run. */
	if (outputs->marks_fd >= 0 && write(outputs->marks_fd, mark, strlen(mark)) < 0 && errno != EAGAIN && !err)
		err = errno == EBADF ? 0 : -errno; /* EBADF: tracing is off */
	return err;
}

void outputs_close(struct outputs *outputs)
{
	while (outputs->opened)
		gpio_close(&outputs->gpios[--outputs->opened]);
	if (outputs->marks_fd >= 0)
		close(outputs->marks_fd);
	outputs->marks_fd = -1;
}
