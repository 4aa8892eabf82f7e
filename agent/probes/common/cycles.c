/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/common/cycles.h"

#include "system/text.h"

#include <stdio.h>

enum { IGNORE, LOW, HIGH };

/* A band without the period in it would find every cycle out of it. */
static int check_bound(const char *name, const char *text, int sign, int64_t period_ns, char *why, size_t room)
{
	int64_t ns;

	if (!text || (!text_duration_ns(text, &ns) && sign * (ns - period_ns) >= 0))
		return 0;
	snprintf(why, room, "option '%s' takes a time with its unit that is not %s the period; not '%s'", name,
		 sign < 0 ? "above" : "below", text);
	return -EINVAL;
}

int band_check(const char *const *values, int64_t period_ns, char *why, size_t room)
{
	int64_t n;

	if (values[IGNORE] && text_number(values[IGNORE], 0, INT32_MAX, &n)) {
		snprintf(why, room, "option 'ignore' takes a number of cycles, not '%s'", values[IGNORE]);
		return -EINVAL;
	}
	int err = check_bound("low", values[LOW], -1, period_ns, why, room);

	return err ? err : check_bound("high", values[HIGH], 1, period_ns, why, room);
}
