/* SPDX-License-Identifier: Apache-2.0 */
/* What of one thread's last field, its whole reaction, is above the limits that the user gave. The writer's. */
#ifndef RTPROOF_ABOVE_H
#define RTPROOF_ABOVE_H

#include "over.h"

enum { ABOVE_LIMITS = 8 };

struct above {
	const int64_t *limits_ns; /* in the order given */
	int n, thread;
	bool tell; /* to people who watch */
	struct over overs[ABOVE_LIMITS];
};

void above_open(struct above *above, int thread, const int64_t *limits_ns, int n, bool tell);

/* An activation that ran, with the second of its due time. */
void above_add(struct above *above, int64_t second, int64_t value_ns);

/* Before the progress of the thread is printed. */
void above_tell(struct above *above);

#endif
