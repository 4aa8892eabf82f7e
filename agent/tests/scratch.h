/* SPDX-License-Identifier: Apache-2.0 */
/* A path in a folder of its own, for one file that does not exist yet; both are gone when the program ends. */
#ifndef RTPROOF_TESTS_SCRATCH_H
#define RTPROOF_TESTS_SCRATCH_H

#include "check.h"

#include <unistd.h>

static char scratch_folder[256], scratch_path[300];

static inline void scratch_remove(void)
{
	unlink(scratch_path);
	rmdir(scratch_folder);
}

static inline const char *scratch_file(void)
{
	const char *place = getenv("TMPDIR");

	if (!scratch_folder[0]) {
		snprintf(scratch_folder, sizeof(scratch_folder), "%s/rtproof-test-XXXXXX", place ? place : "/tmp");
		CHECK(mkdtemp(scratch_folder));
		snprintf(scratch_path, sizeof(scratch_path), "%s/file", scratch_folder);
		CHECK(atexit(scratch_remove) == 0);
	}
	unlink(scratch_path);
	return scratch_path;
}

#endif
