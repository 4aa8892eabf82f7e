/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two GPIO lines: edges come in by one, and the agent drives the other. There may also be only one of the two. Two back ends
 * exist: the character device in versions 2 and 1, and the files of /sys/class/gpio of older kernels. gpio_close() releases
 * the lines and leaves them as they were.
 */
#ifndef RTPROOF_GPIO_LINES_H
#define RTPROOF_GPIO_LINES_H

#include "probes/gpio/uapi.h"
#include "system/undo.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum gpio_edges { GPIO_RISING = 1, GPIO_FALLING = 2, GPIO_BOTH = 3 };
enum gpio_interface { GPIO_AUTO, GPIO_V2, GPIO_V1, GPIO_SYSFS };

enum { GPIO_BATCH = 16, GPIO_PATH = 64 };

struct gpio_edge {
	int64_t edge_ns;  /* when the kernel's handler saw it; 0: sysfs does not tell */
	int64_t woken_ns; /* when the thread was there for it */
	bool level;       /* of the line, when the kernel looked */
	uint32_t lost;    /* edges directly before it that the kernel could not keep */
};

struct gpio_order {
	const char *chip; /* number, path or label; NULL: the lines are numbers of sysfs */
	uint32_t in, out;
	enum gpio_edges edges; /* that are waited for */
	enum gpio_interface interface;
	bool level; /* of the line that is driven, at first */
	bool echo;  /* at first it has the level of the other one */
	bool no_in; /* there is no other one */
	bool no_out; /* there is none that is driven; not with sysfs */
	int64_t period_ns; /* about so far are edges apart */
};

struct gpio_back;

struct gpio {
	struct gpio_order order;
	enum gpio_interface interface;
	const struct gpio_back *back;
	int chip_fd, in_fd, out_fd;
	struct uapi_chip chip;
	bool was_out, level_before;

	/* What one read() took from the kernel, and how far it has been given away. Sysfs: n is 1 once there was an edge. */
	union {
		struct uapi_event1 v1[GPIO_BATCH];
		struct uapi_event2 v2[GPIO_BATCH];
	} events;
	uint32_t n, next;
	int64_t woken_ns;
	uint32_t number;  /* of the line's next event, version 2 */
	uint32_t dropped; /* behind the batch, version 1 */

	bool level; /* of the input, as last seen; only sysfs keeps it up to date */
	struct undo undo;
};

/* Whether the lines are there and free: 0, or a negative errno with a sentence in why. Nothing is changed. */
int gpio_look(const struct gpio_order *order, char *why, size_t room);

/* 0, or a negative errno with a sentence in why. gpio_close() is needed either way. */
int gpio_open(struct gpio *gpio, const struct gpio_order *order, char *why, size_t room);

/* Waits for an edge; timeout_ms -1: for ever. 0, -ETIMEDOUT, -EINTR or another -errno. */
int gpio_wait(struct gpio *gpio, int timeout_ms, struct gpio_edge *edge);

/* Drives the other line. 0 or -errno. */
int gpio_drive(const struct gpio *gpio, bool level);

void gpio_close(struct gpio *gpio);

static inline const char *gpio_interface_name(enum gpio_interface interface)
{
	static const char *const names[] = { [GPIO_AUTO] = "auto", [GPIO_V2] = "v2", [GPIO_V1] = "v1", [GPIO_SYSFS] = "sysfs" };

	return names[interface];
}

/* Whether this kernel has chips as devices, and whether it has GPIO numbers in /sys. */
bool gpio_has_chips(void);
bool gpio_has_sysfs(void);

/* The two kinds of back end; each function as the one of that name above. */
struct gpio_back {
	int (*look)(struct gpio *gpio, char *why, size_t room);
	int (*open)(struct gpio *gpio, char *why, size_t room);
	int (*wait)(struct gpio *gpio, int timeout_ms, struct gpio_edge *edge);
	int (*drive)(const struct gpio *gpio, bool level);
	void (*close)(struct gpio *gpio);
};

extern const struct gpio_back gpio_cdev, gpio_sysfs;

/* Why a line can't be had for what is wanted of it. A chip without interrupts has no number of one for its lines: ENXIO. */
static inline const char *gpio_why(int err)
{
	return err == -EBUSY ? "somebody else uses it" : err == -ENXIO ? "its chip has no interrupts" : strerror(-err);
}

/* Takes the next event of a batch. Pure. */
void gpio_take_v2(struct gpio *gpio, struct gpio_edge *edge);
void gpio_take_v1(struct gpio *gpio, struct gpio_edge *edge);

/*
 * Version 1 keeps GPIO_BATCH edges and drops those that come while it is full, without a word. How many, by the time between
 * the last one of a full batch and its reading. Pure.
 */
uint32_t gpio_dropped(uint32_t n, int64_t last_ns, int64_t read_ns, int64_t period_ns);

#endif
