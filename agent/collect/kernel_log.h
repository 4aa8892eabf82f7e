/* SPDX-License-Identifier: Apache-2.0 */
/* How much the kernel logs. */
#ifndef RTPROOF_COLLECT_KERNEL_LOG_H
#define RTPROOF_COLLECT_KERNEL_LOG_H

#include "record/bytes.h"

/* Appends how many messages the kernel has logged since it started. 0, or -errno. pid is not used. */
int collect_log_messages(struct bytes *text, int pid);

#endif
