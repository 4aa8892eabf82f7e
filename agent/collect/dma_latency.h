/* SPDX-License-Identifier: Apache-2.0 */
/* The request for short idle states: what all requests together grant, and who makes one. */
#ifndef RTPROOF_DMA_LATENCY_H
#define RTPROOF_DMA_LATENCY_H

#include "record/bytes.h"

/* The longest latency in us that the kernel may take to leave an idle state; 2000000000: nobody has asked. */
int collect_dma_latency(struct bytes *text, int pid);

/* Lines "PID COMM" of the processes that hold a request. */
int collect_dma_latency_holders(struct bytes *text, int pid);

#endif
