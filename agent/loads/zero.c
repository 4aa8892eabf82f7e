/* SPDX-License-Identifier: Apache-2.0 */
/* `dd if=/dev/zero of=/dev/null`: two short system calls for each block, and nothing else. */
#include "system/sys.h"

#include "loads/load.h"

#include <fcntl.h>

enum { WORKERS, BYTES };
enum { BYTES_MOST = LOAD_MIB };

static const struct load_option options[] = {
	{ "workers", "processes (default: 1)", 1, LOAD_SLOTS, 1 },
	{ "bytes", "size of a block (default: 512, that of dd)", 1, BYTES_MOST, 512 },
	{ NULL, NULL, 0, 0, 0 },
};

static int work(const struct load_order *order, struct load_slot *slot)
{
	size_t bytes = (size_t)order->values[BYTES];
	char *block = load_map(bytes);
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (!block)
		return -ENOMEM;
	while (read(zero, block, bytes) > 0 && write(null, block, bytes) > 0)
		slot->work++;
	return -errno;
}

const struct load load_zero = {
	.name = "zero",
	.help = "blocks read from /dev/zero and written to /dev/null, as dd does",
	.unit = "blocks",
	.options = options,
	.work = work,
};
