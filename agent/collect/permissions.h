/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel permits this process to do. Tried, because rules that forbid it stand in many places. */
#ifndef RTPROOF_PERMISSIONS_H
#define RTPROOF_PERMISSIONS_H

#include "record/bytes.h"

/* Tries SCHED_FIFO in a child that then ends: "yes", or "no: ERRNO words". Never fails for that. */
int collect_rt_permitted(struct bytes *text, int pid);

/* The same of locking memory, all that a small process has. */
int collect_lock_permitted(struct bytes *text, int pid);

#endif
