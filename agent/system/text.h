/* SPDX-License-Identifier: Apache-2.0 */
/* Small files and words: reading /proc and /sys, durations with units, lists of CPUs. */
#ifndef RTPROOF_TEXT_H
#define RTPROOF_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Up to room bytes of a file, not ended by a zero. How many, or -errno. */
int text_read_file(const char *path, char *buffer, size_t room);

/* First line of a file without its newline, as a string. 0 or -errno. */
int text_read_line(const char *path, char *buffer, size_t room);

/* Whether a text has the word, between spaces and line ends. */
bool text_has_word(const char *text, const char *word);

/* Writes a value into a file that is there. 0 or -errno. */
int text_write_file(const char *path, const char *value);

/* The same, for a file of tracefs that holds several values: those that are there stay. */
int text_append_file(const char *path, const char *value);

/* "500us", "1.5ms", "2h" to nanoseconds. 0, or -EINVAL for a missing unit or a number that makes no sense. */
int text_duration_ns(const char *text, int64_t *ns);

/* A whole number between least and most. 0 or -EINVAL. */
int text_number(const char *text, int64_t least, int64_t most, int64_t *value);

/* Writes a reason as a sentence into why; answers err again. */
int text_refuse(char *why, size_t room, int err, const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
