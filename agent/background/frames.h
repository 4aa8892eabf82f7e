/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of files on their way to the host, through a connection that other programs may print into, and that may change what
 * is no plain text: a line, "=rtproof TYPE OFFSET LENGTH CRC", and the bytes behind it; as text in base64 in the same line.
 * The CRC is zlib's of the bytes, in hexadecimal. follow.h has the lines that the host answers.
 */
#ifndef RTPROOF_FRAMES_H
#define RTPROOF_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_BYTES = 16384, FRAME_TEXT_BYTES = 576 };

struct frames {
	int fd;
	bool as_text;
	int64_t sent; /* bytes, so far */
	char buffer[FRAME_BYTES + 128];
};

/* Bytes that one frame carries at most. */
size_t frame_most(const struct frames *frames);

/* length: at most frame_most(). 0 or -errno. */
int frame_send(struct frames *frames, char type, int64_t offset, const uint8_t *bytes, size_t length);

/* Base64 of RFC 4648, with padding, as a string. Room for 4 characters of each 3 bytes, and one more. */
void base64(char *text, const uint8_t *bytes, size_t length);

#endif
