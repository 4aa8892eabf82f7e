/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that are mounted only when somebody looks into them: an audit would leave the mount behind. */
#ifndef RTPROOF_AUTOMOUNTS_H
#define RTPROOF_AUTOMOUNTS_H

#include <errno.h>
#include <stdbool.h>

/* What is read below such a folder: the host says what it means. */
enum { NOT_MOUNTED_YET = -EREMOTE };

/* Whether to open the path would mount something. Mounts nothing; needs Linux 3.12, and says no before. */
bool automounts_wait(const char *path);

#endif
