/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of processes that send over the loopback device: datagrams as fast as they go, which may be lost, and streams of
 * large blocks. The receivers count.
 */
#include "system/sys.h"

#include "loads/common/network.h"
#include "loads/load.h"

#include <sys/socket.h>

enum { UDP, TCP };
/* The larger the piece, the longer the kernel copies without a rest; a datagram still fits into one packet of the device. */
enum { DATAGRAM = 60000, BLOCK = LOAD_MIB };

static const struct load_option options[] = {
	{ "udp", "pairs that send datagrams (default: one for each CPU)", 0, 1024, LOAD_PER_CPU },
	{ "tcp", "pairs that send a stream (default: one for each CPU)", 0, 1024, LOAD_PER_CPU },
	{ NULL, NULL, 0, 0, 0 },
};

static uint32_t slots(const struct load_order *order)
{
	return (uint32_t)(order->values[UDP] + order->values[TCP]);
}

/* Connects two sockets, so that they hear nobody else. ends[0] receives, ends[1] sends. */
static int connect_datagrams(int *ends)
{
	struct sockaddr_in to, from;

	ends[0] = inet_open_here(SOCK_DGRAM, &to);
	ends[1] = inet_open_here(SOCK_DGRAM, &from);
	if (ends[0] < 0 || ends[1] < 0)
		return ends[0] < 0 ? ends[0] : ends[1];
	return connect(ends[1], (struct sockaddr *)&to, sizeof(to)) < 0 ||
			       connect(ends[0], (struct sockaddr *)&from, sizeof(from)) < 0 ?
		       -errno :
		       0;
}

static int connect_stream(int *ends)
{
	struct sockaddr_in address;
	int listener = inet_open_here(SOCK_STREAM, &address);

	if (listener < 0)
		return listener;
	int err = inet_pair(listener, &address, ends);

	close(listener);
	return err;
}

/* A datagram too many is not sent again; that there is no buffer for it is part of the load. */
static int send_for_ever(int fd, size_t bytes)
{
	char *block = load_map(bytes);

	while (block)
		if (write(fd, block, bytes) < 0 && errno != ENOBUFS)
			return errno;
	return ENOMEM;
}

static int start_pair(int type, struct load_slot *slot)
{
	size_t bytes = type == SOCK_DGRAM ? DATAGRAM : BLOCK;
	int ends[2] = { -1, -1 }, err = type == SOCK_DGRAM ? connect_datagrams(ends) : connect_stream(ends);

	for (int sends = 0; sends < 2 && !err; sends++) {
		pid_t pid = load_spawn();

		if (pid < 0)
			return pid;
		if (pid == 0) {
			close(ends[!sends]);
			_exit(sends ? send_for_ever(ends[1], bytes) : -inet_drain(ends[0], bytes, slot));
		}
	}
	close(ends[0]);
	close(ends[1]);
	return err;
}

static int run(struct load_order *order)
{
	uint32_t datagrams = (uint32_t)order->values[UDP];
	int err = 0;

	for (uint32_t i = 0; i < slots(order) && !err; i++)
		err = start_pair(i < datagrams ? SOCK_DGRAM : SOCK_STREAM, &order->slots[i]);
	return err ? err : load_wait_for_children();
}

const struct load load_net = {
	.name = "net",
	.help = "datagrams and streams over 127.0.0.1",
	.unit = "datagrams and MiB",
	.options = options,
	.slots = slots,
	.run = run,
};
