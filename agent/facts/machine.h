/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the system says about itself, where reading one small file is not enough. It is collected before anything is
 * measured.
 */
#ifndef RTPROOF_MACHINE_H
#define RTPROOF_MACHINE_H

#include "record/bytes.h"

enum { SYSTEM_PARTS = 6 };

/* Goes into the record as a file of that path; err: 0, or -errno of the attempt to read it. */
struct system_part {
	char path[128];
	int err;
	struct bytes content;
};

void system_collect(struct system_part *parts);
void system_free(struct system_part *parts);

/* The lines of a text that begin with one of the words, or if in_line have it anywhere; the words end with NULL. Pure. */
void system_filter(struct bytes *kept, const char *text, const char *const *words, bool in_line);

#endif
