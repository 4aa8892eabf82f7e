/* SPDX-License-Identifier: Apache-2.0 */
/* What an audit must know and no single file tells. Each probe has a name, under which its text stands in the record. */
#ifndef RTPROOF_COLLECT_PROBES_H
#define RTPROOF_COLLECT_PROBES_H

#include "record/bytes.h"

/*
 * help: what its text holds, for `facts --list`. collect: appends the text; 0, TEXT_IS_CUT, or -errno. pid: the process that the
 * audit is about, or 0. counts: asked at both moments. of_process: asked only if there is a pid.
 */
struct audit_probe {
	const char *name, *help;
	int (*collect)(struct bytes *text, int pid);
	bool counts, of_process;
};

/* Ends with a name that is NULL. */
extern const struct audit_probe audit_probes[];

#endif
