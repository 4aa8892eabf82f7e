/* SPDX-License-Identifier: Apache-2.0 */
/* How the wall clock is disciplined, and how long the machine slept. */
#ifndef RTPROOF_CLOCK_ADJUST_H
#define RTPROOF_CLOCK_ADJUST_H

#include "record/bytes.h"

/* Lines "status HEX" (the kernel's STA_ bits), "offset_ns N", "frequency_ppb N", "slept_ns N" (boot time minus monotonic). */
int collect_clock_adjust(struct bytes *text, int pid);

#endif
