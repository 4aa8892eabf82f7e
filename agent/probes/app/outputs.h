/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three outputs that show an oscilloscope, or the kernel's trace, what a periodic application is doing. The outputs are GPIO
 * lines or marks in the trace. Without either, the probe only counts them.
 */
#ifndef RTPROOF_APP_OUTPUTS_H
#define RTPROOF_APP_OUTPUTS_H

#include "probes/gpio/lines.h"

enum output { OUTPUT_WORK, OUTPUT_SLEEP, OUTPUT_NO_SLEEP, OUTPUTS };

struct outputs_order {
	bool wanted, lines, marks;
	const char *chip; /* as in struct gpio_order */
	uint32_t line[OUTPUTS];
};

struct outputs {
	struct outputs_order order;
	struct gpio gpios[OUTPUTS];
	int opened; /* of them */
	int marks_fd;
	uint64_t pulses[OUTPUTS];
};

/* Whether the lines or the trace can be had: 0, or a negative errno with a sentence in why. Nothing is changed. */
int outputs_look(const struct outputs_order *order, char *why, size_t room);

/* All low. 0, or a negative errno with a sentence in why. outputs_close() is needed either way. */
int outputs_open(struct outputs *outputs, const struct outputs_order *order, char *why, size_t room);

/* 0 or -errno. */
int outputs_set(struct outputs *outputs, enum output output, bool level);

void outputs_close(struct outputs *outputs);

#endif
