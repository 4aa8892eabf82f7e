/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes have a file open. */
#ifndef RTPROOF_OPEN_FILES_H
#define RTPROOF_OPEN_FILES_H

#include "record/bytes.h"

/*
 * Appends a line "PID COMM", and with counts also how often, for each process that has the file open. 0; TEXT_IS_CUT if there are too many
 * files to look at; or -EACCES: none was found, and some processes cannot be seen.
 */
int put_holders(struct bytes *text, const char *file, bool counts);

#endif
