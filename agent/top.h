/* SPDX-License-Identifier: Apache-2.0 */
/* The K largest activations of a run, exactly, and which of them have not been written yet. */
#ifndef RTPROOF_TOP_H
#define RTPROOF_TOP_H

#include "bytes.h"

#include <stdbool.h>

enum { TOP_K = 256 };

struct top_entry {
	uint64_t index;
	int64_t due_ns, value;
	bool fresh; /* not in the record yet */
};

/* A heap whose first entry is the smallest of the largest. */
struct top {
	struct top_entry entries[TOP_K];
	uint32_t n;
};

void top_add(struct top *top, uint64_t index, int64_t due_ns, int64_t value);

/* Appends what is fresh as the three arrays of a TOP chunk; false, and nothing, if there is nothing fresh. */
bool put_top(struct bytes *bytes, struct top *top);
bool top_is_fresh(const struct top *top);

#endif
