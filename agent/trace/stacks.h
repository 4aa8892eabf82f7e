/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of who delays, only when somebody does: triggers that let the kernel record one. They are set before the loop, because
 * setting them during it would delay activations, and go with the trace's instance.
 */
#ifndef RTPROOF_STACKS_H
#define RTPROOF_STACKS_H

#include "system/undo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stacks in an instance are right from this Linux on; before, they would go into everybody's trace. */
enum { STACKS_MAJOR = 6, STACKS_MINOR = 1 };

bool kernel_since(long since_major, long since_minor);

/*
 * A stack wherever a timer's interrupt hits a section with preemption or softirqs off, and where a timer is later than this because
 * interrupts were off. What could be set is told in a few words: "sections late-timers", or fewer, or why none. 0, or -errno if none
 * could.
 */
int stacks_set(struct undo *undo, const char *root, const char *instance, int64_t late_ns, char *told, size_t room);

#endif
