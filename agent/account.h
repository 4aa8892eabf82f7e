/* SPDX-License-Identifier: Apache-2.0 */
/* The module's own account of a stage, as text: lines of a name and a number, then "bin NUMBER COUNT" for each that is not empty. */
#ifndef RTPROOF_ACCOUNT_H
#define RTPROOF_ACCOUNT_H

#include "module.h"
#include "probe.h"

/* Fills in path and content; the bins are RTPROOF_BINS. 0 or -ENOMEM. */
int account_file(struct probe_file *file, int thread, const char *field, const struct rtproof_summary *summary,
		 const uint64_t *bins);

#endif
