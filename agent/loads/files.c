/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that keep many small files: each is created, written, renamed, listed, read and removed, a whole batch for each
 * step, so that the kernel has much to look through and to give back at a time.
 */
#include "system/sys.h"

#include "loads/load.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { WORKERS, MIB, KIB, SYNC };
enum { KIB_MOST = 64, NAME_BYTES = 40 };

static const struct load_option options[] = {
	{ "workers", "processes (default: one for each CPU)", 1, LOAD_SLOTS, LOAD_PER_CPU },
	{ "mib", "the most that all files take, in MiB (default: 32), in $TMPDIR or /tmp", 1, 4096, 32 },
	{ "kib", "size of a file, in KiB (default: 16)", 1, KIB_MOST, 16 },
	{ "sync", "1: each is on the medium before the next one is written (default: 0)", 0, 1, 0 },
	{ NULL, NULL, 0, 0, 0 },
};

static int64_t space(const struct load_order *order)
{
	return order->values[MIB] * LOAD_MIB;
}

static const char *name_of(char *name, char kind, const struct load_slot *slot, int64_t number)
{
	/* The counter's address tells the workers apart. */
	snprintf(name, NAME_BYTES, "%c%lx.%lld", kind, (unsigned long)(uintptr_t)slot, (long long)number);
	return name;
}

/* Creates and writes a file, or reads it. */
static int transfer(const char *name, int flags, size_t size)
{
	char block[KIB_MOST * 1024];
	int fd = open(name, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (flags & O_CREAT)
		memset(block, 'x', size);
	ssize_t done = flags & O_CREAT ? write(fd, block, size) : read(fd, block, size);

	close(fd);
	return done == (ssize_t)size ? 0 : -EIO;
}

/* Names in bulk, which libc's readdir() would read in smaller pieces. */
static int list(void)
{
	char names[KIB_MOST * 1024];
	int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (syscall(SYS_getdents64, fd, names, sizeof(names)) > 0)
		;
	close(fd);
	return 0;
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	int64_t share = space(order) / order->values[WORKERS], wanted = order->values[KIB] * 1024;
	size_t size = (size_t)(wanted < share ? wanted : share);
	int64_t count = share / (int64_t)size;
	char first[NAME_BYTES], second[NAME_BYTES];
	/* After a restart there are files of the round before. */
	int create = O_WRONLY | O_CREAT | O_TRUNC | (order->values[SYNC] ? O_SYNC : 0), err = 0;

	while (!err) {
		for (int64_t i = 0; i < count && !err; i++, slot->work++)
			err = transfer(name_of(first, 'a', slot, i), create, size);
		for (int64_t i = 0; i < count && !err; i++, slot->work++)
			err = rename(name_of(first, 'a', slot, i), name_of(second, 'b', slot, i)) < 0 ? -errno : 0;
		if (!err)
			err = list();
		for (int64_t i = 0; i < count && !err; i++, slot->work++)
			err = transfer(name_of(second, 'b', slot, i), O_RDONLY, size);
		for (int64_t i = 0; i < count && !err; i++, slot->work++)
			err = unlink(name_of(second, 'b', slot, i)) < 0 ? -errno : 0;
	}
	return err;
}

const struct load load_files = {
	.name = "files",
	.help = "small files created, written, renamed, listed, read and removed",
	.unit = "operations",
	.options = options,
	.space = space,
	.work = work,
};
