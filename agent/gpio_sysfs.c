/* SPDX-License-Identifier: Apache-2.0 */
/* GPIO lines as files: Documentation/admin-guide/gpio/sysfs.rst of the kernel. They tell that there was an edge, not when. */
#include "sys.h"

#include "gpio_lines.h"

#include "clock.h"
#include "text.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define FOLDER "/sys/class/gpio"

bool gpio_has_sysfs(void)
{
	return access(FOLDER "/export", F_OK) == 0;
}

static const char *path_of(char *path, uint32_t number, const char *file)
{
	snprintf(path, GPIO_PATH, FOLDER "/gpio%u%s", number, file);
	return path;
}

static int look(struct gpio *gpio, char *why, size_t room)
{
	(void)gpio;
	if (gpio_has_sysfs())
		return 0;
	snprintf(why, room, "this kernel has no " FOLDER ": say chip=, and the lines' numbers on it");
	return -ENOENT;
}

/* Makes the line's folder, unless it is there. */
static int export_line(struct gpio *gpio, uint32_t number)
{
	char path[GPIO_PATH], word[16];

	if (access(path_of(path, number, ""), F_OK) == 0)
		return 0;
	snprintf(word, sizeof(word), "%u", number);
	return undo_by(&gpio->undo, FOLDER "/export", word, FOLDER "/unexport", word);
}

static int refuse(uint32_t number, const char *what, int err, char *why, size_t room)
{
	snprintf(why, room, "GPIO %u can't %s by sysfs: %s", number, what,
		 err == -EBUSY ? "somebody else uses it" : err == -EINVAL ? "the system has none of that number" : strerror(-err));
	return err;
}

/* A read looks at the level and acknowledges the edge. 0, 1 or -errno. */
static int read_level(int fd)
{
	char digit;

	return pread(fd, &digit, 1, 0) < 0 ? -errno : digit == '1';
}

/* What to write to a line's direction to have it again as it is. NULL: it does not tell. */
static const char *present_direction(uint32_t number)
{
	char path[GPIO_PATH], direction[16], level[16];

	if (text_read_line(path_of(path, number, "/direction"), direction, sizeof(direction)) ||
	    text_read_line(path_of(path, number, "/value"), level, sizeof(level)))
		return NULL;
	return strcmp(direction, "out") ? "in" : *level == '1' ? "high" : "low";
}

static int set_direction(struct gpio *gpio, uint32_t number, const char *direction)
{
	const char *before = present_direction(number);
	char path[GPIO_PATH];

	return before ? undo_replace(&gpio->undo, path_of(path, number, "/direction"), direction, before) : -ENOTSUP;
}

static int open_in(struct gpio *gpio)
{
	static const char *const words[] = { [GPIO_RISING] = "rising", [GPIO_FALLING] = "falling", [GPIO_BOTH] = "both" };
	uint32_t number = gpio->order.in;
	char path[GPIO_PATH];
	int err = set_direction(gpio, number, "in");

	if (!err)
		err = undo_write(&gpio->undo, path_of(path, number, "/edge"), words[gpio->order.edges]);
	if (!err)
		gpio->in_fd = open(path_of(path, number, "/value"), O_RDONLY | O_CLOEXEC);
	if (err || gpio->in_fd < 0)
		return err ? err : -errno;
	int level = read_level(gpio->in_fd);

	gpio->level = level == 1;
	return level < 0 ? level : 0;
}

static int open_out(struct gpio *gpio)
{
	uint32_t number = gpio->order.out;
	char path[GPIO_PATH];
	int err = set_direction(gpio, number, (gpio->order.echo ? gpio->level : gpio->order.level) ? "high" : "low");

	if (!err)
		gpio->out_fd = open(path_of(path, number, "/value"), O_RDWR | O_CLOEXEC);
	return err || gpio->out_fd >= 0 ? err : -errno;
}

static int open_lines(struct gpio *gpio, char *why, size_t room)
{
	const struct gpio_order *order = &gpio->order;
	int err = look(gpio, why, room);

	if (err)
		return err;
	err = undo_open(&gpio->undo);
	if (err) {
		snprintf(why, room, "what undoes the export of GPIOs can't be started: %s", strerror(-err));
		return err;
	}
	err = export_line(gpio, order->in);
	if (err)
		return refuse(order->in, "be had", err, why, room);
	err = export_line(gpio, order->out);
	if (err)
		return refuse(order->out, "be had", err, why, room);
	err = open_in(gpio);
	if (err)
		return refuse(order->in, "tell of edges", err, why, room);
	err = open_out(gpio);
	return err ? refuse(order->out, "be driven", err, why, room) : 0;
}

/* With both edges told of, a level that is what it was means that at least one more came and was not told of. */
static int wait_for_edge(struct gpio *gpio, int timeout_ms, struct gpio_edge *edge)
{
	struct pollfd fd = { .fd = gpio->in_fd, .events = POLLPRI | POLLERR };
	int ready = poll(&fd, 1, timeout_ms);

	edge->woken_ns = clock_now_ns();
	if (ready <= 0)
		return ready < 0 ? -errno : -ETIMEDOUT;
	int level = read_level(gpio->in_fd);

	if (level < 0)
		return level;
	edge->edge_ns = 0;
	edge->level = level;
	edge->lost = gpio->order.edges == GPIO_BOTH && edge->level == gpio->level;
	gpio->level = edge->level;
	return 0;
}

static int drive(const struct gpio *gpio, bool level)
{
	return pwrite(gpio->out_fd, level ? "1" : "0", 1, 0) < 0 ? -errno : 0;
}

static void close_lines(struct gpio *gpio)
{
	if (gpio->in_fd >= 0)
		close(gpio->in_fd);
	if (gpio->out_fd >= 0)
		close(gpio->out_fd);
	undo_close(&gpio->undo);
	gpio->in_fd = gpio->out_fd = -1;
}

const struct gpio_back gpio_sysfs = { look, open_lines, wait_for_edge, drive, close_lines };
