/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/gpio/pulses.h"

/* A start that comes more than half a period too late has periods without one before it. */
static uint32_t missing_in(const struct pulses *pulses, int64_t passed_ns)
{
	int64_t periods = (passed_ns + pulses->period_ns / 2) / pulses->period_ns;

	return periods > 1 ? (uint32_t)(periods - 1) : 0;
}

bool pulses_take(struct pulses *pulses, const struct gpio_edge *edge, struct pulse *pulse)
{
	if (edge->lost) { /* what was under way may have ended, and others may have come */
		pulses->lost += 1 + edge->lost / 2;
		pulses->start_ns = pulses->end_ns = 0;
	}
	if (edge->level != pulses->level) {
		pulses->end_ns = pulses->start_ns ? edge->edge_ns : 0;
		return false;
	}
	bool whole = pulses->start_ns && pulses->end_ns;

	if (whole) {
		*pulse = (struct pulse){ .start_ns = pulses->start_ns, .length_ns = pulses->end_ns - pulses->start_ns,
					 .period_ns = edge->edge_ns - pulses->start_ns, .lost = pulses->lost };
		pulse->missing = missing_in(pulses, pulse->period_ns);
		pulses->missing += pulse->missing;
		pulses->lost = 0;
	}
	pulses->seen++;
	pulses->start_ns = edge->edge_ns;
	pulses->end_ns = 0;
	return whole;
}
