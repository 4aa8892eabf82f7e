/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cat FILE | netcat -l` and the client that reads it: a server sends a file over TCP, rests, and sends it again. Over
 * 127.0.0.1, at a free port, which nothing outside of this machine can reach.
 */
#include "system/sys.h"

#include "loads/common/network.h"
#include "loads/load.h"

#include <sys/socket.h>

enum { STREAMS, MIB, PAUSE_S };
enum { PIECE = 65536 };

static const struct load_option options[] = {
	{ "streams", "servers, each with a client (default: 1)", 1, 64, 1 },
	{ "mib", "size of the file in MiB, in $TMPDIR or /tmp (default: 8)", 1, 4096, 8 },
	{ "pause", "seconds between its end and its next start (default: 7)", 0, 3600, 7 },
	{ NULL, NULL, 0, 0, 0 },
};

static int prepare(struct load_order *order)
{
	order->rest_ns = order->values[PAUSE_S] * NS_PER_SECOND;
	return 0;
}

static int64_t space(const struct load_order *order)
{
	return order->values[MIB] * LOAD_MIB;
}

static int write_file(int file, int64_t size)
{
	char *piece = load_map(PIECE);
	int err = piece ? 0 : -ENOMEM;

	for (int64_t at = 0; at < size && !err; at += PIECE)
		err = inet_write(file, piece, PIECE);
	return err;
}

static int serve(int file, int to, const struct load_order *order)
{
	char *piece = load_map(PIECE);
	int err = piece ? 0 : -ENOMEM;

	while (!err) {
		for (int64_t at = 0; at < space(order) && !err; at += PIECE)
			err = pread(file, piece, PIECE, at) == PIECE ? inet_write(to, piece, PIECE) : -EIO;
		sys_sleep(CLOCK_MONOTONIC, 0, order->rest_ns);
	}
	return err;
}

static int start_stream(const struct load_order *order, int file, int listener, const struct sockaddr_in *address,
			struct load_slot *slot)
{
	int ends[2] = { -1, -1 }, err = inet_pair(listener, address, ends);

	for (int serves = 0; serves < 2 && !err; serves++) {
		pid_t pid = load_spawn();

		if (pid == 0) {
			close(ends[!serves]);
			_exit(-(serves ? serve(file, ends[1], order) : inet_drain(ends[0], LOAD_MIB, slot)));
		}
		err = pid < 0 ? pid : 0;
	}
	close(ends[0]);
	close(ends[1]);
	return err;
}

static int run(struct load_order *order)
{
	struct sockaddr_in address;
	int file = load_open_file(), listener = inet_open_here(SOCK_STREAM, &address);
	int err = file < 0 ? file : listener < 0 ? listener : write_file(file, space(order));

	for (int64_t i = 0; i < order->values[STREAMS] && !err; i++)
		err = start_stream(order, file, listener, &address, &order->slots[i]);
	close(listener);
	return err ? err : load_wait_for_children();
}

const struct load load_serve = {
	.name = "serve",
	.help = "a file sent over TCP on 127.0.0.1 and read there, with pauses, as by netcat",
	.unit = "MiB",
	.options = options,
	.prepare = prepare,
	.space = space,
	.run = run,
};
