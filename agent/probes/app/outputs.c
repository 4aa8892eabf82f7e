/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/app/outputs.h"

#include "trace/tracefs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Of the agent's own instance of tracefs first, where that is what traces. A descriptor or -errno. */
static int open_marker(const char *root)
{
	char path[TRACEFS_PATH + 16];

	snprintf(path, sizeof(path), "%s/trace_marker", tracefs_own());
	int fd = *tracefs_own() ? open(path, O_WRONLY | O_CLOEXEC) : -1;

	snprintf(path, sizeof(path), "%s/trace_marker", root);
	if (fd < 0)
		fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* As open_marker(). first: there are no threads yet, so that tracefs may be mounted. */
static int open_marks(bool first, char *why, size_t room)
{
	const char *root;
	int fd = first ? tracefs_reach(&root) : tracefs_find(&root);

	fd = fd ? fd : open_marker(root);
	if (fd < 0)
		snprintf(why, room, "marks can't be written to the kernel's trace, which needs root and tracefs: %s", strerror(-fd));
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
	int fd = open_marks(true, why, room);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

int outputs_open(struct outputs *outputs, const struct outputs_order *order, char *why, size_t room)
{
	int err = 0;

	outputs->order = *order;
	outputs->opened = 0;
	outputs->marks_fd = order->marks ? open_marks(false, why, room) : -1;
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
