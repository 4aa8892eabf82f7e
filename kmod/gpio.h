/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RTPROOF_GPIO_H
#define RTPROOF_GPIO_H

#include <linux/errno.h>
#include <linux/kconfig.h>

#if IS_ENABLED(CONFIG_GPIOLIB) && IS_ENABLED(CONFIG_GPIOLIB_IRQCHIP)
int rtproof_gpio_add(void);
void rtproof_gpio_remove(void);
#else
static inline int rtproof_gpio_add(void)
{
	return -EOPNOTSUPP;
}

static inline void rtproof_gpio_remove(void)
{
}
#endif

#endif
