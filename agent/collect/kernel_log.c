/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/kernel_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MOST = 8192, MESSAGES_MOST = 1 << 20 };

/* A message begins with its level, a comma and its number. */
static unsigned long long number_after(const char *message, unsigned long long before)
{
	const char *comma = strchr(message, ',');
	char *end;
	unsigned long long number = comma ? strtoull(comma + 1, &end, 10) : 0;

	return comma && end != comma + 1 ? number + 1 : before;
}

int collect_log_messages(struct bytes *text, int pid)
{
	char message[MESSAGE_MOST + 1], line[32];
	unsigned long long logged = 0;
	ssize_t length = 0;
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	(void)pid;
	if (log < 0)
		return -errno;
	for (int i = 0; i < MESSAGES_MOST; i++) {
		length = read(log, message, MESSAGE_MOST);
		if (length < 0 && (errno == EINTR || errno == EPIPE))
			continue; /* messages were overwritten meanwhile: it goes on behind them */
		if (length <= 0)
			break;
		message[length] = '\0';
		logged = number_after(message, logged);
	}
	int err = length < 0 && errno != EAGAIN ? -errno : 0;

	close(log);
	if (err)
		return err;
	snprintf(line, sizeof(line), "%llu\n", logged);
	put_bytes(text, line, strlen(line));
	return 0;
}
