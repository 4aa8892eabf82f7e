/* SPDX-License-Identifier: Apache-2.0 */
/* Ways of the ipc probe that are a write() into one descriptor and a read() from another. */
#include "sys.h"

#include "ipc_exchange.h"

#include <fcntl.h>
#include <sys/eventfd.h>

static int open_pipe(struct exchange *exchange)
{
	return pipe2(exchange->ids, O_CLOEXEC) < 0 ? -errno : 0;
}

static int open_eventfd(struct exchange *exchange)
{
	exchange->ids[0] = eventfd(0, EFD_CLOEXEC);
	exchange->ids[1] = exchange->ids[0] < 0 ? -1 : fcntl(exchange->ids[0], F_DUPFD_CLOEXEC, 0);
	return exchange->ids[1] < 0 ? -errno : 0;
}

/* As many bytes as an eventfd wants. */
static int post_fd(struct exchange *exchange)
{
	const uint64_t one = 1;

	return write(exchange->ids[1], &one, sizeof(one)) < 0 ? -errno : 0;
}

static int wait_fd(struct exchange *exchange)
{
	uint64_t count;

	return read(exchange->ids[0], &count, sizeof(count)) < 0 ? -errno : 0;
}

static const char *eventfd_unsupported(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0)
		return channel_missing(-errno, "this kernel has no eventfd (CONFIG_EVENTFD)");
	close(fd);
	return NULL;
}

const struct channel channel_pipe = {
	CHANNEL_METHOD("pipe", NULL, "write() into a pipe"),
	.open = open_pipe, .post = post_fd, .wait = wait_fd, .close = channel_close_fds,
};
const struct channel channel_eventfd = {
	CHANNEL_METHOD("eventfd", eventfd_unsupported, "write() into an eventfd"),
	.open = open_eventfd, .post = post_fd, .wait = wait_fd, .close = channel_close_fds,
};
