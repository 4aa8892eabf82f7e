/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of the app probe ask for. */
#ifndef RTPROOF_APP_PLAN_H
#define RTPROOF_APP_PLAN_H

#include "probes/app/outputs.h"
#include "probes/app/work.h"
#include "probes/probe.h"

struct app_plan {
	struct work_order work;
	struct outputs_order outputs;
	bool shift;
	int64_t increment_ns, stop_above_ns; /* 0: never */
	const char *stop_above;              /* as it was given */
};

extern const struct probe_option app_options[]; /* ends with a NULL name */

/* values: in the order of the options, NULL where not given. 0, or -EINVAL with a sentence in why. */
int app_plan_read(const char *const *values, struct app_plan *plan, char *why, size_t room);

#endif
