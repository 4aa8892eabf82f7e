/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of processes that pass messages: every sender of a group writes to every receiver of it, over and over. It is the
 * traffic of hackbench, and stresses the scheduler, wake-ups and the socket code; but it never ends and it counts.
 */
#include "system/sys.h"

#include "loads/common/network.h"
#include "loads/load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { GROUPS, PAIRS, BYTES, RATE };
enum { BYTES_MOST = 4096 };

static const struct load_option options[] = {
	{ "groups", "groups (default: one for each CPU)", 1, 1024, LOAD_PER_CPU },
	{ "pairs", "senders, and as many receivers, in a group (default: 10)", 1, 100, 10 },
	{ "bytes", "size of a message (default: 100)", 1, BYTES_MOST, 100 },
	{ "rate", "messages of a group in a second (default: 0, as many as the kernel lets it)", 0, INT32_MAX, 0 },
	{ NULL, NULL, 0, 0, 0 },
};

static uint32_t slots(const struct load_order *order)
{
	return (uint32_t)(order->values[GROUPS] * order->values[PAIRS]);
}

static int prepare(struct load_order *order)
{
	order->rest_ns = load_rest_ns(order->values[PAIRS] * order->values[PAIRS], order->values[RATE]);
	return 0;
}

/* Reads whole messages for ever and counts them. */
static int receive(int fd, size_t bytes, struct load_slot *slot)
{
	char message[BYTES_MOST];

	while (inet_read(fd, message, bytes) == 0)
		slot->work++;
	return EPIPE;
}

/* In a round, each receiver gets a message of each sender. */
static int send_to_all(const int *fds, uint32_t n, size_t bytes, int64_t rate)
{
	struct load_pace pace = load_pace((int64_t)n * n, rate);
	char message[BYTES_MOST];

	memset(message, 'x', bytes);
	for (uint32_t i = 0; inet_write(fds[i], message, bytes) == 0; i = (i + 1) % n)
		if (i + 1 == n)
			load_await_round(&pace);
	return EPIPE;
}

/* One group: makes the sockets, forks receivers and senders. Both ends stay open in the parent of the group. */
static int start_group(struct load_order *order, uint32_t group, uint32_t pairs, size_t bytes)
{
	int *to = calloc(pairs, sizeof(*to));

	if (!to)
		return -ENOMEM;
	for (uint32_t i = 0; i < pairs; i++) {
		int ends[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
			return -errno;
		to[i] = ends[0];
		pid_t pid = load_spawn();

		if (pid < 0)
			return pid;
		if (pid == 0)
			_exit(receive(ends[1], bytes, &order->slots[group * pairs + i]));
		close(ends[1]);
	}
	for (uint32_t i = 0; i < pairs; i++) {
		pid_t pid = load_spawn();

		if (pid < 0)
			return pid;
		if (pid == 0)
			_exit(send_to_all(to, pairs, bytes, order->values[RATE]));
	}
	return load_wait_for_children();
}

static int run(struct load_order *order)
{
	uint32_t groups = (uint32_t)order->values[GROUPS], pairs = (uint32_t)order->values[PAIRS];

	for (uint32_t group = 0; group < groups; group++) {
		pid_t pid = load_spawn();

		if (pid < 0)
			return pid;
		if (pid == 0)
			_exit(-start_group(order, group, pairs, (size_t)order->values[BYTES]));
	}
	return load_wait_for_children();
}

const struct load load_sched = {
	.name = "sched",
	.help = "groups of processes that pass messages, as hackbench does",
	.unit = "messages",
	.options = options,
	.slots = slots,
	.prepare = prepare,
	.run = run,
};
