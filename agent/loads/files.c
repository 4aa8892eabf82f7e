/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that keep many small files: each is created, written, renamed, read and removed, a whole batch for each step, so
 * that the kernel has much to give back at a time.
 */
#include "../sys.h"

#include "../load.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { WORKERS, MIB };
enum { FILE_BYTES = 4096, NAME_BYTES = 32 };

static const struct load_option options[] = {
	{ "workers", "processes (default: one for each CPU)", 1, LOAD_SLOTS, LOAD_PER_CPU },
	{ "mib", "the most that all files take, in MiB (default: 32), in $TMPDIR or /tmp", 1, 4096, 32 },
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

static int create(const char *name)
{
	char block[FILE_BYTES];
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	memset(block, 'x', sizeof(block));
	int err = write(fd, block, sizeof(block)) == sizeof(block) ? 0 : -EIO;

	close(fd);
	return err;
}

static int read_back(const char *name)
{
	char block[FILE_BYTES];
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int err = read(fd, block, sizeof(block)) == sizeof(block) ? 0 : -EIO;

	close(fd);
	return err;
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	int64_t count = space(order) / order->values[WORKERS] / FILE_BYTES;
	char first[NAME_BYTES], second[NAME_BYTES];
	int err = 0;

	while (!err) {
		for (int64_t i = 0; i < count && !err; i++)
			err = create(name_of(first, 'a', slot, i));
		for (int64_t i = 0; i < count && !err; i++)
			err = rename(name_of(first, 'a', slot, i), name_of(second, 'b', slot, i)) < 0 ? -errno : 0;
		for (int64_t i = 0; i < count && !err; i++, slot->work++)
			err = read_back(name_of(second, 'b', slot, i));
		for (int64_t i = 0; i < count && !err; i++)
			err = unlink(name_of(second, 'b', slot, i)) < 0 ? -errno : 0;
	}
	return err;
}

const struct load load_files = {
	.name = "files",
	.help = "small files created, written, renamed, read and removed",
	.unit = "files",
	.options = options,
	.space = space,
	.work = work,
};
