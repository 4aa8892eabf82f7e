/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "inet.h"

#include "check.h"

#include <string.h>
#include <sys/socket.h>

enum { BYTES = 100000, TIMEOUT_MS = 10000 };

static void addresses_of_one_host_are_taken(void)
{
	static const char *const wrong[] = { "", "here", "1.2.3", "1.2.3.4.5", "1.2.3.256", "0.0.0.0", "0.1.2.3", "224.0.0.1",
					     "255.255.255.255", "::1", "1.2.3.4 " };
	uint32_t host = 0;

	CHECK(inet_parse("192.168.1.2", &host) == 0 && host == 0xc0a80102);
	CHECK(inet_parse("127.0.0.1", &host) == 0 && host == INET_HERE);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK(inet_parse(wrong[i], &host) == -EINVAL);
}

static int listen_here(struct sockaddr_in *address)
{
	int fd = inet_open_here(SOCK_STREAM, address);

	CHECK(fd >= 0 && address->sin_port != 0 && address->sin_addr.s_addr == htonl(INET_HERE));
	return fd;
}

static void a_port_that_nobody_listens_at_is_told(void)
{
	struct sockaddr_in address;

	close(listen_here(&address));
	CHECK(inet_connect(&address, TIMEOUT_MS) == -ECONNREFUSED);
}

/* More than fits into the buffers would block, so a process writes. */
static void blocks_arrive_whole_and_an_end_is_an_error(void)
{
	static char out[BYTES], in[BYTES];
	struct sockaddr_in address;
	int listener = listen_here(&address), ends[2];

	CHECK(inet_pair(listener, &address, ends) == 0);
	for (int i = 0; i < BYTES; i++)
		out[i] = (char)(i * 7);
	pid_t pid = load_spawn();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(inet_write(ends[1], out, BYTES) || inet_write(ends[1], out, 10));
	close(ends[1]);
	CHECK(inet_read(ends[0], in, BYTES) == 0 && !memcmp(in, out, BYTES));
	CHECK(inet_read(ends[0], in, 11) == -EPIPE);
	CHECK(load_wait_for_children() == -ECHILD); /* as it says of one that ended well, which no worker should */
	close(ends[0]);
	close(listener);
}

static void what_comes_is_counted_in_whole_pieces(void)
{
	static char out[BYTES];
	struct load_slot slot = { .work = 5 };
	struct sockaddr_in address;
	int listener = listen_here(&address), ends[2];

	CHECK(inet_pair(listener, &address, ends) == 0);
	CHECK(inet_write(ends[1], out, 3 * 4096 + 100) == 0);
	close(ends[1]);
	CHECK(inet_drain(ends[0], 4096, &slot) == -EPIPE);
	CHECK(slot.work == 8);
}

int main(void)
{
	sys_init();
	alarm(60);
	addresses_of_one_host_are_taken();
	a_port_that_nobody_listens_at_is_told();
	blocks_arrive_whole_and_an_end_is_an_error();
	what_comes_is_counted_in_whole_pieces();
	return EXIT_SUCCESS;
}
