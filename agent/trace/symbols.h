/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's functions whose addresses occur in a trace. All symbols would be megabytes; those that occur are some hundred lines.
 * They are looked up at the end of the run, when the modules that came during it are there.
 */
#ifndef RTPROOF_SYMBOLS_H
#define RTPROOF_SYMBOLS_H

#include "record/bytes.h"

#include <stddef.h>
#include <stdint.h>

enum { SYMBOLS_MOST = 4096, SYMBOLS_RANGES = 512 };

/* Where code lies. */
struct code_range {
	uint64_t first, behind;
};

struct symbols {
	int word; /* bytes of an address of the kernel; 0: there are no symbols */
	int n_ranges, n_lasting;
	struct code_range ranges[SYMBOLS_RANGES]; /* the kernel's own, then those in brackets at the begin, then those of modules */
	uint64_t lowest, behind;                  /* of all */
	uint64_t *seen; /* a table of SYMBOLS_MOST * 2 places by the address; 0: free */
	int n_seen;
};

/*
 * Reads where code lies from these files, which have the form of /proc/kallsyms and /proc/modules. 0, or -errno: -EPERM if the
 * kernel hides its addresses. All others do nothing then.
 */
int symbols_open(struct symbols *symbols, int word, const char *kallsyms, const char *modules);

/* Reads again where the code of modules lies. */
void symbols_renew(struct symbols *symbols, const char *modules);

/* Takes the addresses from bytes of the trace, in which they stand at multiples of four. */
void symbols_see(struct symbols *symbols, const uint8_t *bytes, size_t length);

/* Appends a line for each function in which an address lies, as in kallsyms, by increasing address. */
void symbols_tell(struct symbols *symbols, const char *kallsyms, struct bytes *text);

void symbols_close(struct symbols *symbols);

#endif
