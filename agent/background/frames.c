/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "background/frames.h"

#include "record/bytes.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { STALL_MS = 30000 };

void base64(char *text, const uint8_t *bytes, size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		size_t n = length - i < 3 ? length - i : 3;
		uint32_t three = (uint32_t)bytes[i] << 16 | (n > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (n > 2 ? bytes[i + 2] : 0);

		for (size_t at = 0; at < 4; at++)
			*text++ = (char)(at <= n ? digits[three >> (18 - 6 * at) & 63] : '=');
	}
	*text = '\0';
}

size_t frame_most(const struct frames *frames)
{
	return frames->as_text ? FRAME_TEXT_BYTES : FRAME_BYTES;
}

/* A connection that is broken takes no more, and a write into it could wait for a quarter of an hour. */
static int send_all(int fd, const char *from, size_t length)
{
	struct pollfd output = { .fd = fd, .events = POLLOUT };

	while (length) {
		int ready = poll(&output, 1, STALL_MS);

		if (ready == 0)
			return -ETIMEDOUT;
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready < 0)
			continue;
		ssize_t n = write(fd, from, length < PIPE_BUF ? length : PIPE_BUF);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			from += n;
			length -= (size_t)n;
		}
	}
	return 0;
}

int frame_send(struct frames *frames, char type, int64_t offset, const uint8_t *bytes, size_t length)
{
	char *at = frames->buffer;

	/* The newline before ends what another program has begun to print. */
	at += sprintf(at, "\n=rtproof %c %lld %zu %08lx", type, (long long)offset, length,
		      (unsigned long)crc32_update(0, bytes, length));
	*at++ = frames->as_text ? ' ' : '\n';
	if (frames->as_text) {
		base64(at, bytes, length);
		at += strlen(at);
		*at++ = '\n';
	} else {
		memcpy(at, bytes, length);
		at += length;
	}
	frames->sent += at - frames->buffer;
	return send_all(frames->fd, frames->buffer, (size_t)(at - frames->buffer));
}
