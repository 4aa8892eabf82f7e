/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that each write a file in memory, punch holes into it, fill them through a mapping and cut it to nothing. */
#include "system/sys.h"

#include "loads/load.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { WORKERS, MIB };
enum { MIB_PRESET = 64, HOLE = 65536 };

static const struct load_option options[] = {
	{ "workers", "processes (default: one for each CPU)", 1, LOAD_SLOTS, LOAD_PER_CPU },
	{ "mib", "file of each in MiB (default: 64; all at most a quarter of the available memory)", 1, 1024, 0 },
	{ NULL, NULL, 0, 0, 0 },
};

static int prepare(struct load_order *order)
{
	return load_share_memory(order, MIB, MIB_PRESET, order->values[WORKERS]);
}

/* Before Linux 3.17 there is no memfd_create(), and a file without a name on the usual tmpfs serves as well. */
static int open_file(void)
{
	char name[] = "/dev/shm/rtproof-load-XXXXXX";
	int fd = (int)syscall(SYS_memfd_create, "rtproof-load", 1U);

	if (fd >= 0 || errno != ENOSYS)
		return fd < 0 ? -errno : fd;
	fd = mkstemp(name);
	if (fd < 0)
		return -ENOSYS;
	unlink(name);
	return fd;
}

static int fill(int fd, int64_t size, const char *block, struct load_slot *slot)
{
	for (int64_t at = 0; at < size; at += LOAD_MIB, slot->work++)
		if (pwrite(fd, block, LOAD_MIB, at) < 0)
			return -errno;
	return 0;
}

/* Every other piece of 64 KiB. Without a word where the kernel can't: before Linux 3.5. */
static void punch(int fd, int64_t size)
{
	for (int64_t at = 0; at < size; at += 2 * (int64_t)HOLE)
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, HOLE) < 0)
			return;
}

static int fill_mapped(int fd, int64_t size, struct load_slot *slot)
{
	char *region = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (region == MAP_FAILED)
		return -errno;
	load_touch(region, (size_t)size, slot);
	return munmap(region, (size_t)size) < 0 ? -errno : 0;
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	int64_t size = order->values[MIB] * LOAD_MIB;
	char *block = load_map(LOAD_MIB);
	int fd = open_file(), err = fd < 0 ? fd : block ? 0 : -ENOMEM;

	while (!err) {
		err = fill(fd, size, block, slot);
		if (!err) {
			punch(fd, size);
			err = fill_mapped(fd, size, slot);
		}
		if (!err && ftruncate(fd, 0) < 0)
			err = -errno;
	}
	return err;
}

const struct load load_tmpfs = {
	.name = "tmpfs",
	.help = "files in memory written, punched with holes and truncated",
	.unit = "MiB",
	.options = options,
	.prepare = prepare,
	.work = work,
};
