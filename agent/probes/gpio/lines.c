/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/gpio/lines.h"

#include <errno.h>
#include <string.h>

static void prepare(struct gpio *gpio, const struct gpio_order *order)
{
	memset(gpio, 0, sizeof(*gpio));
	gpio->order = *order;
	gpio->interface = order->chip ? order->interface : GPIO_SYSFS;
	gpio->back = order->chip ? &gpio_cdev : &gpio_sysfs;
	gpio->chip_fd = gpio->in_fd = gpio->out_fd = -1;
	gpio->number = 1;
}

int gpio_look(const struct gpio_order *order, char *why, size_t room)
{
	struct gpio gpio;

	prepare(&gpio, order);
	int err = gpio.back->look(&gpio, why, room);

	gpio.back->close(&gpio);
	return err;
}

int gpio_open(struct gpio *gpio, const struct gpio_order *order, char *why, size_t room)
{
	prepare(gpio, order);
	return gpio->back->open(gpio, why, room);
}

int gpio_wait(struct gpio *gpio, int timeout_ms, struct gpio_edge *edge)
{
	return gpio->back->wait(gpio, timeout_ms, edge);
}

int gpio_drive(const struct gpio *gpio, bool level)
{
	return gpio->back->drive(gpio, level);
}

void gpio_close(struct gpio *gpio)
{
	gpio->back->close(gpio);
}
