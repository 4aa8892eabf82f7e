/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of all CPUs for as long as a run lasts, in files without a name beside the record: nothing of them stays, whatever ends
 * the agent. In the end they become parts of the record.
 */
#ifndef RTPROOF_SPOOL_H
#define RTPROOF_SPOOL_H

#include "measure/shared.h"
#include "trace/symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spool {
	int *fds; /* of each CPU */
	int cpus;
	int64_t left;       /* bytes that may still come */
	uint64_t kept, dropped; /* pages */
	bool full;              /* the file system had no room for one */
};

/* Beside the record at this path, or in /tmp where that is no file. 0 or -errno. */
int spool_open(struct spool *spool, const char *beside, int cpus, int64_t most);

/* False if there is no room for the page: it is dropped. */
bool spool_add(struct spool *spool, int cpu, const uint8_t *page, size_t size);

/*
 * Writes the pages of a CPU into the record, of which symbols takes the addresses. What is written gives its room back, so that all
 * fits on a disk that is full.
 */
void spool_keep(struct spool *spool, struct run *run, int cpu, struct symbols *symbols);

void spool_close(struct spool *spool);

#endif
