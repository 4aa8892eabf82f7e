/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "record/delivery.h"

#include "system/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { PATH_ROOM = 512, LINE_ROOM = 640, NUMBERS = 5, WORDS = 7 };

int delivery_read(const char *folder, struct delivery *delivery)
{
	char path[PATH_ROOM], line[LINE_ROOM];
	long long number[NUMBERS];

	if (snprintf(path, sizeof(path), "%s/delivery", folder) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	int err = text_read_line(path, line, sizeof(line));

	if (err < 0)
		return err;
	if (sscanf(line, "%lld %lld %lld %lld %lld %159s %159s", &number[0], &number[1], &number[2], &number[3], &number[4],
		   delivery->cpus, delivery->device) != WORDS)
		return -EINVAL;
	for (int i = 0; i < NUMBERS; i++)
		if (number[i] < 0)
			return -EINVAL;
	delivery->record = number[0];
	delivery->log = number[1];
	delivery->sent = number[2];
	delivery->wakeups = number[3];
	delivery->cpu_ns = number[4];
	return 0;
}

int delivery_write(const char *folder, const struct delivery *delivery)
{
	char path[PATH_ROOM], new[PATH_ROOM], line[LINE_ROOM];
	int length = snprintf(line, sizeof(line), "%lld %lld %lld %lld %lld %s %s\n", (long long)delivery->record,
			      (long long)delivery->log, (long long)delivery->sent, (long long)delivery->wakeups,
			      (long long)delivery->cpu_ns, *delivery->cpus ? delivery->cpus : "-",
			      *delivery->device ? delivery->device : "-");

	if (snprintf(path, sizeof(path), "%s/delivery", folder) >= (int)sizeof(path) ||
	    snprintf(new, sizeof(new), "%s/delivery.new", folder) >= (int)sizeof(new))
		return -ENAMETOOLONG;
	int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	ssize_t written = write(fd, line, (size_t)length);
	int err = written < 0 ? -errno : written < length ? -ENOSPC : 0;

	close(fd);
	if (!err && rename(new, path) < 0)
		err = -errno;
	return err;
}
