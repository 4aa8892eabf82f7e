/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that send blocks of 60,000 bytes over TCP to servers that send them back, each copied to an output buffer before it
 * goes out. Alone, the streams cross a cable between two network namespaces, and so all of the network code but a card's
 * driver. With `peer` they go to another host, where `listen` waits for them.
 */
#include "system/sys.h"

#include "loads/common/network.h"
#include "loads/load.h"
#include "loads/common/network.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { PAIRS, PEER, PORT, LISTEN, BY_CABLE };
enum { BLOCK = 60000, BOTH = 2 * BLOCK, BLOCK_KB = BLOCK / 1000 };
enum { PORT_PRESET = 5567, PORT_MOST = 65535, PEER_LENGTH = 15, PATIENCE_MS = 3000 };
/* So that it is told within two seconds. A client that is gone without a word makes room for another. */
enum { SILENCE_MS = 1500, SILENCE_OF_CLIENT_MS = 10000 };

static const struct load_option options[] = {
	{ "pairs", "clients, each with a server (default: 1); with listen: clients served at a time", 1, 256, 1 },
	{ "peer", "IPv4 address of a host where listen waits (default: this machine is both)", 1, PEER_LENGTH, LOAD_TEXT },
	{ "port", "port of the peer (default: 5567)", 1, PORT_MOST, PORT_PRESET },
	{ "listen", "wait at this port for clients from other hosts, and be their server", 1, PORT_MOST, 0 },
	{ NULL, NULL, 0, 0, 0 },
};

static const char *unsupported(const struct load_order *order)
{
	static char why[LOAD_WHY];
	uint32_t host;

	if (!order->texts[PEER])
		return NULL;
	if (order->values[LISTEN] > 0)
		return "listen and peer are two ends: give one of them";
	if (inet_parse(order->texts[PEER], &host))
		return "peer takes the IPv4 address of one host, such as 192.168.1.2";
	struct sockaddr_in address = inet_address(host, (int)order->values[PORT]);
	int fd = inet_connect(&address, PATIENCE_MS);

	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	snprintf(why, sizeof(why), "nothing answers at %s, port %d: %s; start rtproof-agent load comms:listen=%d there",
		 order->texts[PEER], (int)order->values[PORT], strerror(-fd), (int)order->values[PORT]);
	return why;
}

static int prepare(struct load_order *order)
{
	if (!order->texts[PEER] && order->values[LISTEN] <= 0)
		order->values[BY_CABLE] = netns_choose(order);
	return 0;
}

/* Sends back what comes, and counts it, until the other side ends. */
static int serve(int fd, struct load_slot *slot)
{
	char *in = load_map(BOTH), *out = in + BLOCK;
	int err = in ? 0 : -ENOMEM;

	while (!err) {
		err = inet_read(fd, in, BLOCK);
		if (!err)
			err = inet_write(fd, memcpy(out, in, BLOCK), BLOCK);
		slot->work += err ? 0 : BLOCK_KB;
	}
	if (in)
		munmap(in, BOTH);
	close(fd);
	return err;
}

/* Counts what has come back. Every block differs, so that one that is not its own shows. */
static int send_blocks(int fd, struct load_slot *slot)
{
	char *in = load_map(BOTH), *out = in + BLOCK;
	int err = in ? 0 : -ENOMEM;

	for (uint32_t number = 0; !err; number++) {
		memcpy(out, &number, sizeof(number));
		err = inet_write(fd, out, BLOCK);
		if (!err)
			err = inet_read(fd, in, BLOCK);
		if (!err && memcmp(in, out, BLOCK))
			err = -EBADMSG;
		slot->work += err ? 0 : BLOCK_KB;
	}
	return err;
}

static int start(int fd, int other, int (*work)(int fd, struct load_slot *slot), struct load_slot *slot)
{
	pid_t pid = load_spawn();

	if (pid != 0)
		return pid < 0 ? pid : 0;
	if (other >= 0)
		close(other);
	_exit(-work(fd, slot));
}

static int run_alone(struct load_order *order)
{
	struct load_slot uncounted = { .work = 0 };
	bool by_cable = order->values[BY_CABLE] > 0;
	struct sockaddr_in address = inet_address(by_cable ? NETNS_FAR : INET_HERE, 0);
	int listener = by_cable ? netns_cable(SOCK_STREAM) : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), err = 0;

	if (listener >= 0)
		listener = inet_bind(listener, &address);
	for (int64_t i = 0; i < order->values[PAIRS] && listener >= 0 && !err; i++) {
		int ends[2] = { -1, -1 };

		err = inet_pair(listener, &address, ends);
		if (!err)
			err = start(ends[0], ends[1], serve, &uncounted);
		if (!err)
			err = start(ends[1], ends[0], send_blocks, &order->slots[i]);
		close(ends[0]);
		close(ends[1]);
	}
	return listener < 0 ? listener : err ? err : load_wait_for_children();
}

/* Which of them says so first does not matter. */
static int say_loss(const struct load_order *order, int err)
{
	snprintf(order->why, LOAD_WHY, "the peer %s, port %d, does not answer any more: %s", order->texts[PEER],
		 (int)order->values[PORT], strerror(err == -EAGAIN ? ETIMEDOUT : -err));
	return err;
}

static int start_client(const struct load_order *order, int fd, struct load_slot *slot)
{
	pid_t pid = fd < 0 ? fd : load_spawn();

	if (pid == 0)
		_exit(-say_loss(order, send_blocks(fd, slot)));
	return pid < 0 ? pid : 0;
}

static int run_client(struct load_order *order)
{
	uint32_t host = 0;
	int err = inet_parse(order->texts[PEER], &host);
	struct sockaddr_in address = inet_address(host, (int)order->values[PORT]);

	for (int64_t i = 0; i < order->values[PAIRS] && !err; i++) {
		int fd = inet_connect(&address, PATIENCE_MS);

		if (!order->patient)
			inet_limit(fd, SILENCE_MS);
		err = start_client(order, fd, &order->slots[i]);
		close(fd);
	}
	return err ? err : load_wait_for_children();
}

/* A client that goes makes room for the next one. */
static int serve_all(int listener, struct load_slot *slot)
{
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0 && errno != ECONNABORTED)
			return -errno;
		inet_limit(fd, SILENCE_OF_CLIENT_MS);
		if (fd >= 0)
			serve(fd, slot);
	}
}

static int run_server(struct load_order *order)
{
	struct sockaddr_in address = inet_address(INADDR_ANY, (int)order->values[LISTEN]);
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	fd = inet_bind(fd, &address);
	for (int64_t i = 0; i < order->values[PAIRS] && fd >= 0 && !err; i++)
		err = start(fd, -1, serve_all, &order->slots[i]);
	return fd < 0 ? fd : err ? err : load_wait_for_children();
}

static int run(struct load_order *order)
{
	signal(SIGPIPE, SIG_IGN);
	if (order->texts[PEER])
		return run_client(order);
	return order->values[LISTEN] > 0 ? run_server(order) : run_alone(order);
}

const struct load load_comms = {
	.name = "comms",
	.help = "blocks of 60,000 bytes echoed over TCP between two network namespaces or two hosts",
	.unit = "kB",
	.options = options,
	.unsupported = unsupported,
	.prepare = prepare,
	.run = run,
};
