/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One source of /dev/rtproof, the device of the kernel module: its events, read in batches and handed out as activations one by
 * one, and the module's own account of them.
 */
#ifndef RTPROOF_DEVICE_H
#define RTPROOF_DEVICE_H

#include "probes/probe.h"

#include <sys/ioctl.h>

/* The interface of the kernel module, also for a C library that comes without the kernel's headers. */

typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

#define RTPROOF_TYPES_ARE_THERE
#include "probes/kernel/kmod.h"

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

/* The module's own account of a stage, as text: lines of a name and a number, then "bin NUMBER COUNT" for each that is not empty. */

/* Fills in path and content; the bins are RTPROOF_BINS. 0 or -ENOMEM. */
int account_file(struct probe_file *file, int thread, const char *field, const struct rtproof_summary *summary,
		 const uint64_t *bins);

#endif
