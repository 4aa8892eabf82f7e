/* SPDX-License-Identifier: Apache-2.0 */
/* GPIO lines as files: Documentation/admin-guide/gpio/sysfs.rst of the kernel. They tell that there was an edge, not when. */
#include "system/sys.h"

#include "probes/gpio/lines.h"
#include "system/clock.h"
#include "system/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define FOLDER "/sys/class/gpio"

enum { GPIO_NAME = 40, LIST_MOST = 4096 };

bool gpio_has_sysfs(void)
{
	return access(FOLDER "/export", F_OK) == 0;
}

/* The path of a file of a line, whose folder is called gpioN, or as the chip's driver calls the line. */
static const char *path_of(char *path, const char *folder, const char *file)
{
	snprintf(path, GPIO_PATH, FOLDER "/%s/%s", folder, file);
	return path;
}

/* "/one/other/": the names that are there. */
static void list_names(char *list, size_t room)
{
	DIR *folder = opendir(FOLDER);
	struct dirent *entry;
	size_t used = 1;

	snprintf(list, room, "/");
	while (folder && used < room && (entry = readdir(folder)))
		used += (size_t)snprintf(list + used, room - used, "%s/", entry->d_name);
	if (folder)
		closedir(folder);
}

/* The first name of a list that is not in the other one. 0 or -ENOENT. */
static int find_new(char *list, const char *before, char *found)
{
	char *rest = NULL, between[GPIO_NAME + 2];

	for (char *name = strtok_r(list, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
		if (snprintf(between, sizeof(between), "/%s/", name) >= (int)sizeof(between) || strstr(before, between))
			continue;
		snprintf(found, GPIO_NAME, "%s", name);
		return 0;
	}
	return -ENOENT;
}

static int look(struct gpio *gpio, char *why, size_t room)
{
	(void)gpio;
	if (gpio_has_sysfs())
		return 0;
	snprintf(why, room, "this kernel has no " FOLDER ": say chip=, and the lines' numbers on it");
	return -ENOENT;
}

/* Makes the line's folder, unless it is there, and finds it. */
static int export_line(struct gpio *gpio, uint32_t number, char *folder)
{
	char path[GPIO_PATH], word[16], before[LIST_MOST], after[LIST_MOST];

	snprintf(folder, GPIO_NAME, "gpio%u", number);
	if (access(path_of(path, folder, ""), F_OK) == 0)
		return 0;
	list_names(before, sizeof(before));
	snprintf(word, sizeof(word), "%u", number);
	int err = undo_by(&gpio->undo, FOLDER "/export", word, FOLDER "/unexport");

	list_names(after, sizeof(after));
	return err ? err : find_new(after, before, folder);
}

static int refuse(uint32_t number, const char *what, int err, char *why, size_t room)
{
	snprintf(why, room, "GPIO %u can't %s by sysfs: %s", number, what,
		 err == -EINVAL ? "the system has none of that number" : gpio_why(err));
	return err;
}

/* A read looks at the level and acknowledges the edge. 0, 1 or -errno. */
static int read_level(int fd)
{
	char digit;

	return pread(fd, &digit, 1, 0) < 0 ? -errno : digit == '1';
}

/* What to write to a line's direction to have it again as it is. NULL: it does not tell. */
static const char *present_direction(const char *folder)
{
	char path[GPIO_PATH], direction[16], level[16];

	if (text_read_line(path_of(path, folder, "direction"), direction, sizeof(direction)) ||
	    text_read_line(path_of(path, folder, "value"), level, sizeof(level)))
		return NULL;
	return strcmp(direction, "out") ? "in" : *level == '1' ? "high" : "low";
}

static int set_direction(struct gpio *gpio, const char *folder, const char *direction)
{
	const char *before = present_direction(folder);
	char path[GPIO_PATH];

	return before ? undo_replace(&gpio->undo, path_of(path, folder, "direction"), direction, before) : -ENOTSUP;
}

static int open_in(struct gpio *gpio, const char *folder)
{
	static const char *const words[] = { [GPIO_RISING] = "rising", [GPIO_FALLING] = "falling", [GPIO_BOTH] = "both" };
	char path[GPIO_PATH];
	int err = set_direction(gpio, folder, "in");

	if (!err)
		err = undo_write(&gpio->undo, path_of(path, folder, "edge"), words[gpio->order.edges]);
	if (!err)
		gpio->in_fd = open(path_of(path, folder, "value"), O_RDONLY | O_CLOEXEC);
	if (err || gpio->in_fd < 0)
		return err ? err : -errno;
	int level = read_level(gpio->in_fd);

	gpio->level = level == 1;
	return level < 0 ? level : 0;
}

static int open_out(struct gpio *gpio, const char *folder)
{
	char path[GPIO_PATH];
	int err = set_direction(gpio, folder, (gpio->order.echo ? gpio->level : gpio->order.level) ? "high" : "low");

	if (!err)
		gpio->out_fd = open(path_of(path, folder, "value"), O_RDWR | O_CLOEXEC);
	return err || gpio->out_fd >= 0 ? err : -errno;
}

static int open_lines(struct gpio *gpio, char *why, size_t room)
{
	const struct gpio_order *order = &gpio->order;
	char in[GPIO_NAME], out[GPIO_NAME];
	int err = look(gpio, why, room);

	if (err)
		return err;
	err = undo_open(&gpio->undo);
	if (err) {
		snprintf(why, room, "the clean-up of exported GPIOs can't be started: %s", strerror(-err));
		return err;
	}
	err = order->no_in ? 0 : export_line(gpio, order->in, in);
	if (err)
		return refuse(order->in, "be exported", err, why, room);
	err = export_line(gpio, order->out, out);
	if (err)
		return refuse(order->out, "be exported", err, why, room);
	err = order->no_in ? 0 : open_in(gpio, in);
	if (err)
		return refuse(order->in, "tell of edges", err == -ENOENT ? -ENXIO : err, why, room); /* no file `edge` */
	err = open_out(gpio, out);
	return err ? refuse(order->out, "be driven", err, why, room) : 0;
}

/*
 * With both edges told of, a level that is what it was means that one more came and was not told of. But not at first: the edge may
 * have been before the level was looked at.
 */
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
	edge->lost = gpio->n && gpio->order.edges == GPIO_BOTH && edge->level == gpio->level;
	gpio->level = edge->level;
	gpio->n = 1;
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
