/* SPDX-License-Identifier: Apache-2.0 */
#include "above.h"

#include <string.h>

void above_open(struct above *above, int thread, const int64_t *limits_ns, int n, bool tell)
{
	memset(above, 0, sizeof(*above));
	above->thread = thread;
	above->limits_ns = limits_ns;
	above->n = n;
	above->tell = tell;
}

void above_add(struct above *above, int64_t second, int64_t value_ns)
{
	for (int i = 0; above->tell && i < above->n; i++)
		if (value_ns > above->limits_ns[i])
			over_add(&above->overs[i], above->thread, above->limits_ns[i], second, value_ns);
}

void above_tell(struct above *above)
{
	for (int i = 0; i < above->n; i++)
		over_tell(&above->overs[i], above->thread, above->limits_ns[i]);
}
