/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/inet.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { QUEUE = 64, PATIENCE_MS = 5000 };

struct sockaddr_in inet_address(uint32_t host, int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(host) };
}

int inet_parse(const char *text, uint32_t *host)
{
	struct in_addr address;

	if (inet_pton(AF_INET, text, &address) != 1)
		return -EINVAL;
	*host = ntohl(address.s_addr);
	return *host >> 24 && *host >> 28 < 0xe ? 0 : -EINVAL;
}

int inet_bind(int fd, struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address), type_size = sizeof(int);
	int type = 0;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)address, size) == 0 && getsockname(fd, (struct sockaddr *)address, &size) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && (type != SOCK_STREAM || listen(fd, QUEUE) == 0))
		return fd;
	int err = -errno;

	close(fd);
	return err;
}

int inet_open_here(int type, struct sockaddr_in *address)
{
	*address = inet_address(INET_HERE, 0);
	return inet_bind(socket(AF_INET, type | SOCK_CLOEXEC, 0), address);
}

static int await_connection(int fd, int timeout_ms)
{
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	int error = 0, ready = poll(&wait, 1, timeout_ms);
	socklen_t size = sizeof(error);

	if (ready <= 0)
		return ready < 0 ? -errno : -ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? -errno : -error;
}

int inet_connect(const struct sockaddr_in *address, int timeout_ms)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	int err = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

	if (err == -EINPROGRESS)
		err = await_connection(fd, timeout_ms);
	if (!err && fcntl(fd, F_SETFL, 0) == 0)
		return fd;
	close(fd);
	return err ? err : -EIO;
}

int inet_pair(int listener, const struct sockaddr_in *address, int *ends)
{
	struct sockaddr_in peer = { 0 }, self = { 0 };
	socklen_t size = sizeof(peer), self_size = sizeof(self);

	ends[1] = inet_connect(address, PATIENCE_MS);
	if (ends[1] < 0)
		return ends[1];
	ends[0] = accept(listener, (struct sockaddr *)&peer, &size);
	if (ends[0] < 0 || getsockname(ends[1], (struct sockaddr *)&self, &self_size) < 0)
		return -errno;
	return peer.sin_port == self.sin_port ? 0 : -ECONNABORTED;
}

void inet_limit(int fd, int timeout_ms)
{
	const struct timeval limit = { timeout_ms / 1000, timeout_ms % 1000 * 1000L };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

int inet_read(int fd, void *block, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = read(fd, (char *)block + done, bytes - done);

		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		done += (size_t)n;
	}
	return 0;
}

int inet_write(int fd, const void *block, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = write(fd, (const char *)block + done, bytes - done);

		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		done += (size_t)n;
	}
	return 0;
}
