/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/gpio/lines.h"
#include "system/clock.h"
#include "system/text.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { CHIPS_MOST = 256, EVENTS_KEPT = 1024 };

/* What a line is asked for. */
enum use { AS_IT_IS, INPUT, OUTPUT, EDGES };

static int call(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument) < 0 ? -errno : 0;
}

static void chip_path(int number, char *path)
{
	snprintf(path, GPIO_PATH, "/dev/gpiochip%d", number);
}

bool gpio_has_chips(void)
{
	char path[GPIO_PATH];
	bool found = false;

	for (int i = 0; i < CHIPS_MOST && !found; i++) {
		chip_path(i, path);
		found = access(path, F_OK) == 0;
	}
	return found;
}

static int open_chip(struct gpio *gpio, const char *path)
{
	gpio->chip_fd = open(path, O_RDWR | O_CLOEXEC);
	int err = gpio->chip_fd < 0 ? -errno : call(gpio->chip_fd, UAPI_CHIP, &gpio->chip);

	if (err && gpio->chip_fd >= 0) {
		close(gpio->chip_fd);
		gpio->chip_fd = -1;
	}
	return err;
}

/* The first chip of that name or label. */
static int open_by_label(struct gpio *gpio)
{
	char path[GPIO_PATH];

	for (int i = 0; i < CHIPS_MOST; i++) {
		chip_path(i, path);
		if (open_chip(gpio, path))
			continue;
		if (!strcmp(gpio->chip.label, gpio->order.chip) || !strcmp(gpio->chip.name, gpio->order.chip))
			return 0;
		close(gpio->chip_fd);
	}
	gpio->chip_fd = -1;
	return -ENOENT;
}

/* "gpiochip0 (gpioloop), ...": those that this user may open. */
static const char *list_chips(struct gpio *gpio, char *list, size_t room)
{
	char path[GPIO_PATH];
	size_t used = 0;

	snprintf(list, room, "none that can be opened");
	for (int i = 0; i < CHIPS_MOST && used < room; i++) {
		chip_path(i, path);
		if (open_chip(gpio, path))
			continue;
		used += (size_t)snprintf(list + used, room - used, "%s%s (%s)", used ? ", " : "", gpio->chip.name, gpio->chip.label);
		close(gpio->chip_fd);
	}
	gpio->chip_fd = -1;
	return list;
}

static int find_chip(struct gpio *gpio, char *why, size_t room)
{
	const char *chip = gpio->order.chip;
	char path[GPIO_PATH], list[160];
	int64_t number;
	int err;

	if (!text_number(chip, 0, CHIPS_MOST - 1, &number)) {
		chip_path((int)number, path);
		err = open_chip(gpio, path);
	} else {
		err = *chip == '/' ? open_chip(gpio, chip) : open_by_label(gpio);
	}
	if (err == -ENOENT)
		snprintf(why, room, "there is no GPIO chip '%s'; there are: %s", chip, list_chips(gpio, list, sizeof(list)));
	else if (err == -EACCES || err == -EPERM)
		snprintf(why, room, "GPIO chip '%s' may not be opened: it needs root, or a group that may write to it", chip);
	else if (err == -ENOTTY || err == -EINVAL)
		snprintf(why, room, "'%s' is no GPIO chip", chip);
	else if (err)
		snprintf(why, room, "GPIO chip '%s' can't be opened: %s", chip, strerror(-err));
	return err;
}

/* What the kernel says of a line: whether it is in use and by whom, whether it is driven. */
struct state {
	bool used, driven;
	char consumer[UAPI_NAME];
};

static int line_state(const struct gpio *gpio, uint32_t line, enum gpio_interface interface, struct state *state)
{
	struct uapi_line1 v1 = { .line = line };
	struct uapi_line2 v2 = { .line = line };
	int err = interface == GPIO_V2 ? call(gpio->chip_fd, UAPI2_LINE, &v2) : call(gpio->chip_fd, UAPI1_LINE, &v1);

	state->used = interface == GPIO_V2 ? v2.flags & UAPI2_USED : v1.flags & UAPI1_USED;
	state->driven = interface == GPIO_V2 ? v2.flags & UAPI2_OUTPUT : v1.flags & UAPI1_IS_OUT;
	snprintf(state->consumer, sizeof(state->consumer), "%s", interface == GPIO_V2 ? v2.consumer : v1.consumer);
	return err;
}

/* Kernels answer EINVAL to a version that they don't know, and later ENOTTY. */
static int choose_interface(struct gpio *gpio, char *why, size_t room)
{
	struct state state;

	for (enum gpio_interface interface = GPIO_V2; interface <= GPIO_V1; interface++) {
		if (gpio->order.interface != GPIO_AUTO && gpio->order.interface != interface)
			continue;
		if (line_state(gpio, 0, interface, &state))
			continue;
		gpio->interface = interface;
		return 0;
	}
	snprintf(why, room, "this kernel does not have the GPIO interface %s (v2 came with Linux 5.10, v1 can be left out)",
		 gpio_interface_name(gpio->order.interface));
	return -ENOSYS;
}

static int look_at_line(struct gpio *gpio, uint32_t line, bool *driven, char *why, size_t room)
{
	struct state state = { false };

	if (line >= gpio->chip.lines) {
		snprintf(why, room, "GPIO chip %s (%s) has the lines 0 to %u, and no %u", gpio->chip.name, gpio->chip.label,
			 gpio->chip.lines - 1, line);
		return -EINVAL;
	}
	int err = line_state(gpio, line, gpio->interface, &state);

	*driven = state.driven;
	if (err)
		snprintf(why, room, "line %u of %s can't be read: %s", line, gpio->chip.name, strerror(-err));
	if (!err && state.used)
		snprintf(why, room, "line %u of %s is in use by '%s'", line, gpio->chip.name, state.consumer);
	return !err && state.used ? -EBUSY : err;
}

static int cdev_look(struct gpio *gpio, char *why, size_t room)
{
	bool ignored;
	int err = find_chip(gpio, why, room);

	if (!err)
		err = choose_interface(gpio, why, room);
	if (!err && !gpio->order.no_in)
		err = look_at_line(gpio, gpio->order.in, &ignored, why, room);
	return err || gpio->order.no_out ? err : look_at_line(gpio, gpio->order.out, &gpio->was_out, why, room);
}

static int request_v1(const struct gpio *gpio, uint32_t line, enum use use, bool level)
{
	struct uapi_request1 lines = { .lines = { line }, .n = 1, .levels = { level }, .consumer = "rtproof" };
	struct uapi_edges1 edges = { .line = line, .flags = UAPI1_INPUT, .edges = gpio->order.edges, .consumer = "rtproof" };

	if (use == EDGES) {
		int err = call(gpio->chip_fd, UAPI1_EDGES, &edges);

		return err ? err : edges.fd;
	}
	lines.flags = use == INPUT ? UAPI1_INPUT : use == OUTPUT ? UAPI1_OUTPUT : 0;
	int err = call(gpio->chip_fd, UAPI1_REQUEST, &lines);

	return err ? err : lines.fd;
}

static int request_v2(const struct gpio *gpio, uint32_t line, enum use use, bool level)
{
	struct uapi_request2 lines = { .lines = { line }, .n = 1, .consumer = "rtproof", .events = use == EDGES ? EVENTS_KEPT : 0 };

	if (use == INPUT || use == EDGES)
		lines.config.flags = UAPI2_INPUT;
	if (use == EDGES)
		lines.config.flags |= (uint64_t)gpio->order.edges << UAPI2_EDGES_SHIFT;
	if (use == OUTPUT) {
		lines.config.flags = UAPI2_OUTPUT;
		lines.config.n = 1;
		lines.config.attributes[0] = (struct uapi_attribute2){ UAPI2_ATTRIBUTE_LEVELS, 0, level, 1 };
	}
	int err = call(gpio->chip_fd, UAPI2_REQUEST, &lines);

	return err ? err : lines.fd;
}

/* A file descriptor that holds the line, or -errno. */
static int request(const struct gpio *gpio, uint32_t line, enum use use, bool level)
{
	return gpio->interface == GPIO_V2 ? request_v2(gpio, line, use, level) : request_v1(gpio, line, use, level);
}

/* The level of a line that is held: 0, 1 or -errno. */
static int get_level(const struct gpio *gpio, int fd)
{
	struct uapi_levels1 v1 = { { 0 } };
	struct uapi_levels2 v2 = { .lines = 1 };
	int err = gpio->interface == GPIO_V2 ? call(fd, UAPI2_GET, &v2) : call(fd, UAPI1_GET, &v1);

	return err ? err : gpio->interface == GPIO_V2 ? (int)(v2.levels & 1) : v1.levels[0] != 0;
}

static int refuse_line(const struct gpio *gpio, uint32_t line, const char *what, int err, char *why, size_t room)
{
	snprintf(why, room, "line %u of %s can't %s: %s", line, gpio->chip.name, what, gpio_why(err));
	return err;
}

static int open_in(struct gpio *gpio, char *why, size_t room)
{
	gpio->in_fd = request(gpio, gpio->order.in, EDGES, false);
	int level = gpio->in_fd < 0 ? gpio->in_fd : get_level(gpio, gpio->in_fd);

	gpio->level = level > 0;
	if (level == -ENODEV) /* what version 1 says of a chip without interrupts */
		level = -ENXIO;
	return level < 0 ? refuse_line(gpio, gpio->order.in, "report edges", level, why, room) : 0;
}

static int cdev_open(struct gpio *gpio, char *why, size_t room)
{
	int err = cdev_look(gpio, why, room);

	if (!err && !gpio->order.no_in)
		err = open_in(gpio, why, room);
	if (err || gpio->order.no_out)
		return err;
	if (gpio->was_out) {
		int fd = request(gpio, gpio->order.out, AS_IT_IS, false);

		gpio->level_before = fd >= 0 && get_level(gpio, fd) == 1;
		close(fd);
	}
	gpio->out_fd = request(gpio, gpio->order.out, OUTPUT, gpio->order.echo ? gpio->level : gpio->order.level);
	return gpio->out_fd < 0 ? refuse_line(gpio, gpio->order.out, "be driven", gpio->out_fd, why, room) : 0;
}

void gpio_take_v2(struct gpio *gpio, struct gpio_edge *edge)
{
	const struct uapi_event2 *event = &gpio->events.v2[gpio->next++];

	edge->edge_ns = (int64_t)event->time_ns;
	edge->level = event->id == UAPI_EVENT_RISING;
	edge->lost = event->number_of_line - gpio->number;
	gpio->number = event->number_of_line + 1;
}

void gpio_take_v1(struct gpio *gpio, struct gpio_edge *edge)
{
	const struct uapi_event1 *event = &gpio->events.v1[gpio->next];

	edge->edge_ns = (int64_t)event->time_ns;
	edge->level = event->id == UAPI_EVENT_RISING;
	edge->lost = gpio->next++ ? 0 : gpio->dropped;
}

uint32_t gpio_dropped(uint32_t n, int64_t last_ns, int64_t read_ns, int64_t period_ns)
{
	return n < GPIO_BATCH || read_ns < last_ns ? 0 : (uint32_t)((read_ns - last_ns) / period_ns);
}

/* Before Linux 5.7 version 1 told the time of the wall clock. Nothing comes from the future, so it is told apart easily. */
static int64_t to_monotonic(int64_t time_ns, int64_t woken_ns)
{
	return time_ns > woken_ns ? time_ns - (clock_wall_ns() - clock_now_ns()) : time_ns;
}

/* Without a time-out the read itself waits: one system call between the edge and the thread. */
static int fill_batch(struct gpio *gpio, int timeout_ms)
{
	struct pollfd fd = { .fd = gpio->in_fd, .events = POLLIN };
	bool v2 = gpio->interface == GPIO_V2;

	if (timeout_ms >= 0) {
		int ready = poll(&fd, 1, timeout_ms);

		gpio->woken_ns = clock_now_ns();
		if (ready <= 0)
			return ready < 0 ? -errno : -ETIMEDOUT;
	}
	ssize_t n = read(gpio->in_fd, &gpio->events, v2 ? sizeof(gpio->events.v2) : sizeof(gpio->events.v1));

	if (timeout_ms < 0)
		gpio->woken_ns = clock_now_ns();
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	gpio->next = 0;
	gpio->n = (uint32_t)((size_t)n / (v2 ? sizeof(*gpio->events.v2) : sizeof(*gpio->events.v1)));
	return 0;
}

static uint32_t dropped_behind(const struct gpio *gpio)
{
	if (gpio->interface != GPIO_V1 || gpio->n < GPIO_BATCH)
		return 0;
	int64_t last_ns = to_monotonic((int64_t)gpio->events.v1[gpio->n - 1].time_ns, gpio->woken_ns);

	return gpio_dropped(gpio->n, last_ns, gpio->woken_ns, gpio->order.period_ns);
}

static int cdev_wait(struct gpio *gpio, int timeout_ms, struct gpio_edge *edge)
{
	if (gpio->next < gpio->n) {
		edge->woken_ns = clock_now_ns();
	} else {
		int err = fill_batch(gpio, timeout_ms);

		if (err)
			return err;
		edge->woken_ns = gpio->woken_ns;
	}
	if (gpio->interface == GPIO_V2) {
		gpio_take_v2(gpio, edge);
		return 0;
	}
	gpio_take_v1(gpio, edge);
	edge->edge_ns = to_monotonic(edge->edge_ns, edge->woken_ns);
	if (gpio->next == 1)
		gpio->dropped = dropped_behind(gpio);
	return 0;
}

static int cdev_drive(const struct gpio *gpio, bool level)
{
	struct uapi_levels1 v1 = { { level } };
	struct uapi_levels2 v2 = { level, 1 };

	return gpio->interface == GPIO_V2 ? call(gpio->out_fd, UAPI2_SET, &v2) : call(gpio->out_fd, UAPI1_SET, &v1);
}

/* A line that was an input is made one again: released lines stay driven. */
static void cdev_close(struct gpio *gpio)
{
	if (gpio->in_fd >= 0)
		close(gpio->in_fd);
	if (gpio->out_fd >= 0) {
		if (gpio->was_out)
			cdev_drive(gpio, gpio->level_before);
		close(gpio->out_fd);
		int fd = gpio->was_out ? -1 : request(gpio, gpio->order.out, INPUT, false);

		if (fd >= 0)
			close(fd);
	}
	if (gpio->chip_fd >= 0)
		close(gpio->chip_fd);
	gpio->chip_fd = gpio->in_fd = gpio->out_fd = -1;
}

const struct gpio_back gpio_cdev = { cdev_look, cdev_open, cdev_wait, cdev_drive, cdev_close };
