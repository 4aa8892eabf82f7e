/* SPDX-License-Identifier: Apache-2.0 */
/* What raises the timer's interrupt. /proc/timer_list names it at its end, after all timers, and is too long to be kept whole. */
#ifndef RTPROOF_COLLECT_TIMER_DEVICES_H
#define RTPROOF_COLLECT_TIMER_DEVICES_H

#include "record/bytes.h"

/* The lines of /proc/timer_list that name the device of each CPU, and the device and CPUs of the broadcast. 0 or -errno. */
int collect_timer_devices(struct bytes *text, int pid);

#endif
