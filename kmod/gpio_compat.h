/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between kernels for a GPIO chip. */
#ifndef RTPROOF_GPIO_COMPAT_H
#define RTPROOF_GPIO_COMPAT_H

#include <linux/gpio/driver.h>
#include <linux/irqdesc.h>
#include <linux/irqdomain.h>
#include <linux/version.h>

/* Since 6.17 setting a line can fail. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define RTPROOF_GPIO_SET void
#define RTPROOF_GPIO_SET_OK
#else
#define RTPROOF_GPIO_SET int
#define RTPROOF_GPIO_SET_OK 0
#endif

/* Since 5.19 a chip's interrupt functions are constant, and do what gpiolib added before. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 19, 0)
#define RTPROOF_GPIO_IRQ_CHIP
#define rtproof_gpio_irq_on(chip, line) ((void)(chip), (void)(line))
#define rtproof_gpio_irq_off(chip, line) ((void)(chip), (void)(line))
#define rtproof_gpio_irq_setup(irq, constant, copy) ((void)(constant), (irq)->chip = (copy))
#else
#define RTPROOF_GPIO_IRQ_CHIP .flags = IRQCHIP_IMMUTABLE, GPIOCHIP_IRQ_RESOURCE_HELPERS
#define rtproof_gpio_irq_on(chip, line) gpiochip_enable_irq(chip, line)
#define rtproof_gpio_irq_off(chip, line) gpiochip_disable_irq(chip, line)
#define rtproof_gpio_irq_setup(irq, constant, copy) gpio_irq_chip_set_chip(irq, constant)
#endif

static inline void rtproof_raise_irq(struct irq_domain *domain, unsigned int line)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 14, 0)
	generic_handle_irq(irq_find_mapping(domain, line));
#else
	generic_handle_domain_irq(domain, line);
#endif
}

#endif
