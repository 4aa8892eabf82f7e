/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the probes that run a loop: which lengths of a cycle count as short or long. They do not change the
 * measurement. The record keeps them as the user gave them, and its reader applies them.
 */
#ifndef RTPROOF_CYCLES_H
#define RTPROOF_CYCLES_H

#include "probes/probe.h"

/* In the order of their values. */
#define BAND_OPTIONS                                                                          \
	{ "ignore", "cycles at the start that are not counted (default: 1000, but at most a tenth of all)" }, \
	{ "low", "a cycle below this time is short (default: the period less a fifth)" },     \
	{ "high", "a cycle above this time is long (default: the period and a fifth)" }

/* 0, or -EINVAL with a sentence in why. */
int band_check(const char *const *values, int64_t period_ns, char *why, size_t room);

#endif
