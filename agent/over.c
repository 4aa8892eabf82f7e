/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "over.h"

#include <stdio.h>

void over_tell(struct over *over, int thread, int64_t limit_ns)
{
	int64_t beyond_s = (over->worst_ns - limit_ns) / NS_PER_SECOND;

	if (!over->any || beyond_s <= over->told_s)
		return;
	over->told_s = beyond_s;
	fprintf(stderr, "over thread=%d limit_ns=%lld second=%lld worst_ns=%lld\n", thread, (long long)limit_ns,
		(long long)over->second, (long long)over->worst_ns);
}

void over_add(struct over *over, int thread, int64_t limit_ns, int64_t second, int64_t value_ns)
{
	if (over->any && second == over->second) {
		if (value_ns > over->worst_ns)
			over->worst_ns = value_ns;
		return;
	}
	over_tell(over, thread, limit_ns);
	*over = (struct over){ second, value_ns, -1, true };
}
