/* SPDX-License-Identifier: Apache-2.0 */
/* A large file written in blocks of 1 MiB and cut to nothing, over and over, as `dd if=/dev/zero of=FILE bs=1M` does it. */
#include "system/sys.h"

#include "loads/load.h"

enum { WORKERS, MIB };

static const struct load_option options[] = {
	{ "workers", "processes, each with a file (default: 1)", 1, 64, 1 },
	{ "mib", "size of a file in MiB, in $TMPDIR or /tmp, where twice that must be free (default: 64)", 1, 65536, 64 },
	{ NULL, NULL, 0, 0, 0 },
};

static int64_t space(const struct load_order *order)
{
	return order->values[WORKERS] * order->values[MIB] * LOAD_MIB;
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	void *block = load_map(LOAD_MIB);
	int fd = load_open_file();

	if (!block || fd < 0)
		return block ? fd : -ENOMEM;
	for (;;) {
		for (int64_t i = 0; i < order->values[MIB]; i++, slot->work++)
			if (write(fd, block, LOAD_MIB) < 0)
				return -errno;
		if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
			return -errno;
	}
}

const struct load load_dd = {
	.name = "dd",
	.help = "a large file written and truncated",
	.unit = "MiB",
	.options = options,
	.space = space,
	.work = work,
};
