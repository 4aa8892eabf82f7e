/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pulses that another board gives on a line, one in each run of its loop: how long each is, how long it is from its start to
 * that of the next, and how many are missing in between.
 */
#ifndef RTPROOF_GPIO_PULSES_H
#define RTPROOF_GPIO_PULSES_H

#include "probes/gpio/lines.h"

struct pulse {
	int64_t start_ns, length_ns;
	int64_t period_ns; /* from its start to that of the next */
	uint32_t lost;     /* pulses directly before it whose fate is unknown */
	uint32_t missing;  /* periods behind it without a start */
};

struct pulses {
	int64_t period_ns; /* that the loop should have */
	bool level;        /* of the line in a pulse */
	int64_t start_ns, end_ns; /* of the last pulse; 0: not known */
	uint32_t lost;     /* pulses whose fate is unknown since the last whole one */
	uint64_t seen, missing;
};

/* Takes the next edge. Whether a pulse is whole with it, as it is once the next begins. Pure. */
bool pulses_take(struct pulses *pulses, const struct gpio_edge *edge, struct pulse *pulse);

#endif
