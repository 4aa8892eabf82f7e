/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 64 * 1024 };

static int open_nameless(const char *beside, int cpu)
{
	char path[4200];
	const char *slash = strrchr(beside, '/');
	int folder = slash ? (int)(slash - beside) + 1 : 0;

	if (!strcmp(beside, "-"))
		snprintf(path, sizeof(path), "/tmp/.rtproof-%d-cpu%d", (int)getpid(), cpu);
	else
		snprintf(path, sizeof(path), "%.*s.rtproof-%d-cpu%d", folder, beside, (int)getpid(), cpu);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

int spool_open(struct spool *spool, const char *beside, int cpus, int64_t most)
{
	int err = 0;

	spool->left = most;
	spool->fds = calloc((size_t)cpus, sizeof(*spool->fds));
	if (!spool->fds)
		return -ENOMEM;
	while (spool->cpus < cpus && !err) {
		int fd = open_nameless(beside, spool->cpus);

		err = fd < 0 ? fd : 0;
		if (!err)
			spool->fds[spool->cpus++] = fd;
	}
	return err;
}

bool spool_add(struct spool *spool, int cpu, const uint8_t *page, size_t size)
{
	bool room = spool->left >= (int64_t)size;
	ssize_t written = room ? write(spool->fds[cpu], page, size) : 0;

	if (written != (ssize_t)size) {
		spool->full = spool->full || (room && (written >= 0 || means_full(-errno)));
		spool->left = 0; /* what comes later would follow a hole */
		spool->dropped++;
		return false;
	}
	spool->left -= (int64_t)size;
	spool->kept++;
	return true;
}

void spool_keep(struct spool *spool, struct run *run, int cpu, struct symbols *symbols)
{
	char name[64], *part = malloc(PART);
	off_t at = 0;
	ssize_t length;

	snprintf(name, sizeof(name), "trace/cpu%d/raw", cpu);
	if (part)
		lseek(spool->fds[cpu], 0, SEEK_SET);
	while (part && !run->record.no_space && (length = read(spool->fds[cpu], part, PART)) > 0) {
		(void)fallocate(spool->fds[cpu], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, length);
		at += length;
		record_content(&run->record, run_time_ns(run), MOMENT_END, name, 0, part, (size_t)length);
		if (symbols)
			symbols_see(symbols, (const uint8_t *)part, (size_t)length);
	}
	free(part);
}

void spool_close(struct spool *spool)
{
	for (int cpu = 0; cpu < spool->cpus; cpu++)
		close(spool->fds[cpu]);
	free(spool->fds);
	spool->fds = NULL;
	spool->cpus = 0;
}
