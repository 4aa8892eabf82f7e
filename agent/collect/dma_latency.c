/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/dma_latency.h"

#include "collect/lines.h"
#include "collect/open_files.h"

#include <fcntl.h>

static const char device[] = "/dev/cpu_dma_latency";

/* To open the device makes a request for the largest value, which changes nothing, and to close it takes that back. */
int collect_dma_latency(struct bytes *text, int pid)
{
	int32_t latency_us;
	int fd = open(device, O_RDONLY | O_CLOEXEC);

	(void)pid;
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, &latency_us, sizeof(latency_us));
	int err = n < 0 ? -errno : n == (ssize_t)sizeof(latency_us) ? 0 : -EPROTO;

	close(fd);
	if (!err)
		put_format(text, "%ld\n", (long)latency_us);
	return err;
}

int collect_dma_latency_holders(struct bytes *text, int pid)
{
	(void)pid;
	return put_holders(text, device, false);
}
