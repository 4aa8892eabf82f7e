/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of the probe ipc that wakes the measuring thread at each due time. */
#ifndef RTPROOF_IPC_SENDER_H
#define RTPROOF_IPC_SENDER_H

#include "probes/ipc/wake_channel.h"

/* It has the receiver's policy and priority. cpu: -1: the receiver's. 0 or -errno; sender_end() is needed either way. */
int sender_start(struct exchange *exchange, int cpu);

/* For the receiver, which takes no more. */
void sender_end(struct exchange *exchange);

#endif
