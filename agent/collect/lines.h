/* SPDX-License-Identifier: Apache-2.0 */
/* Text of probes: lines that grow, and files of /proc that may be longer than one buffer. */
#ifndef RTPROOF_COLLECT_LINES_H
#define RTPROOF_COLLECT_LINES_H

#include "record/bytes.h"

#include <stddef.h>
#include <stdint.h>

/* What a probe answers when its text is true, and something was left out for want of room. */
enum { TEXT_IS_CUT = 1, PROBE_MOST = 1024 * 1024 };

/* Appends as printf would; at most 1,200 bytes at once. */
void put_format(struct bytes *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a file, and a zero that is not counted. 0, TEXT_IS_CUT if it is longer than most, or -errno. */
int put_file(struct bytes *text, const char *path, size_t most);

/* The next line of a text as a string, or NULL at its end. *text moves on; its newlines become zeros. */
char *next_line(char **text);

#endif
