/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "netns.h"

#include "inet.h"

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

int main(void)
{
	sys_init();
	alarm(60);
	int err = netns_trial();

	if (err)
		SKIP(strerror(-err));
	two_namespaces_talk_and_ours_sees_nothing_of_it();
	a_load_notes_that_it_has_a_cable();
	without_a_cable_it_says_why();
	return EXIT_SUCCESS;
}
