/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "loads/common/network.h"

#include "check.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void network(char *name, size_t room)
{
	ssize_t n = readlink("/proc/self/ns/net", name, room - 1);

	CHECK(n > 0);
	name[n] = '\0';
}

/* The far end listens, so what connects at its address has gone over the cable. */
static int talk(void)
{
	struct sockaddr_in far = inet_address(NETNS_FAR, 0);
	int listener = inet_bind(netns_cable(SOCK_STREAM), &far), ends[2];
	char text[6] = "";

	CHECK(listener >= 0);
	CHECK(inet_pair(listener, &far, ends) == 0);
	CHECK(inet_write(ends[1], "cable", 6) == 0);
	CHECK(inet_read(ends[0], text, 6) == 0 && !strcmp(text, "cable"));

	/* The near end knows the cable, and not the address of the other. */
	struct ifreq device = { .ifr_name = "rtproof" };
	struct sockaddr_in address;
	int near = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(near >= 0 && ioctl(near, SIOCGIFADDR, &device) == 0);
	memcpy(&address, &device.ifr_addr, sizeof(address));
	CHECK(ntohl(address.sin_addr.s_addr) == NETNS_NEAR);
	CHECK(bind(near, (struct sockaddr *)&far, sizeof(far)) < 0 && errno == EADDRNOTAVAIL);
	return EXIT_SUCCESS;
}

static void two_namespaces_talk_and_ours_sees_nothing_of_it(void)
{
	char before[64], after[64];
	struct ifreq device = { .ifr_name = "rtproof" };
	int status, fd = socket(AF_INET, SOCK_DGRAM, 0);
	pid_t pid;

	network(before, sizeof(before));
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		exit(talk());
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
	network(after, sizeof(after));
	CHECK(!strcmp(before, after));
	CHECK(fd >= 0 && ioctl(fd, SIOCGIFADDR, &device) < 0 && errno == ENODEV);
}

static void a_load_notes_that_it_has_a_cable(void)
{
	struct load_order order = { .note = NULL };

	CHECK(netns_choose(&order));
	CHECK(!strcmp(order.note, "between two network namespaces of its own") && !order.lack);
}

/* No more files may be opened, so there can be no socket: the trial says why, and the load that it goes another way. */
static void without_a_cable_it_says_why(void)
{
	struct load_order order = { .note = NULL };
	struct rlimit before, none;

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = before;
	none.rlim_cur = 0;
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	CHECK(netns_trial() == -EMFILE);
	CHECK(!netns_choose(&order));
	CHECK(!order.note && !strncmp(order.lack, "over 127.0.0.1 instead of two network namespaces: ", 50));
	CHECK(!strcmp(order.lack + 50, strerror(EMFILE)));
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

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
	alarm(120);
	addresses_of_one_host_are_taken();
	a_port_that_nobody_listens_at_is_told();
	blocks_arrive_whole_and_an_end_is_an_error();
	what_comes_is_counted_in_whole_pieces();
	int err = netns_trial();

	if (err)
		SKIP(strerror(-err));
	two_namespaces_talk_and_ours_sees_nothing_of_it();
	a_load_notes_that_it_has_a_cable();
	without_a_cable_it_says_why();
	return EXIT_SUCCESS;
}
