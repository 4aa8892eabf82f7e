/* SPDX-License-Identifier: Apache-2.0 */
/* The events of one source of /dev/rtproof, read in batches and handed out as activations one by one. */
#ifndef RTPROOF_DEVICE_H
#define RTPROOF_DEVICE_H

#include "module.h"
#include "probe.h"

enum { DEVICE_BATCH = 64 };

/* How long the module may gather a batch: seldom enough to leave the measured task in peace. */
#define DEVICE_BATCH_NS 50000000

struct device {
	int fd;
	enum rtproof_mode mode;
	int64_t first_due_ns, period_ns;
	uint64_t expected; /* index of the next event if none is lost */
	int64_t read_ns;   /* when the batch was had */
	bool stopped;
	int n, at; /* events of the batch, and those handed out */
	struct rtproof_event events[DEVICE_BATCH];
};

/* Stages of the mode, the deepest last; ends with NULL. */
extern const char *const device_fields[4][3];

/* As a probe's. What makes no sense is -EPROTO. */
int device_take(struct device *device, struct activation *activation);

/* As a probe's: stops the source, so that what it still has is all there will be. */
bool device_pending(struct device *device);

#endif
