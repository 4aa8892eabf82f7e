/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "loads/common/network.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/*
 * What rtnetlink(7) wants to hear to make a pair of veth devices, laid out as it goes over the socket. All parts are whole
 * words, so nothing has to be padded. The C library may come without the kernel's headers.
 */
struct attribute {
	uint16_t length, type;
};

struct device {
	uint8_t family, unused;
	uint16_t type;
	int32_t index;
	uint32_t flags, change;
};

struct request {
	uint32_t length;
	uint16_t type, flags;
	uint32_t sequence, port;
	struct device device;
	struct attribute name;
	char name_text[8];
	struct attribute info, kind;
	char kind_text[4];
	struct attribute data, peer;
	struct device peer_device;
	struct attribute peer_name;
	char peer_name_text[8];
	struct attribute place;
	int32_t place_pid;
};

struct answer {
	uint32_t length;
	uint16_t type, flags;
	uint32_t sequence, port;
	int32_t error;
	struct request request;
};

struct netlink_address {
	uint16_t family, unused;
	uint32_t port, groups;
};

enum { NEW_LINK = 16, REQUEST = 1, ACKNOWLEDGE = 4, EXCLUSIVE = 0x200, CREATE = 0x400, ERROR = 2 };
enum { LINK_NAME = 3, LINK_INFO = 18, LINK_PLACE_PID = 19, INFO_KIND = 1, INFO_DATA = 2, VETH_PEER = 1 };

static const char device_name[] = "rtproof";

/* From the member `from` to the end of the member `to`. */
#define SPAN(from, to) (offsetof(struct request, to) + sizeof(((struct request *)0)->to) - offsetof(struct request, from))

/* The other half of the pair appears where the process `pid` is. */
static int make_pair(int netlink, pid_t pid)
{
	const struct netlink_address kernel = { .family = AF_NETLINK };
	struct answer answer = { .error = -EPROTO };
	const struct request request = {
		.length = sizeof(request),
		.type = NEW_LINK,
		.flags = REQUEST | ACKNOWLEDGE | CREATE | EXCLUSIVE,
		.name = { SPAN(name, name_text), LINK_NAME },
		.name_text = "rtproof",
		.info = { SPAN(info, place_pid), LINK_INFO },
		.kind = { SPAN(kind, kind_text), INFO_KIND },
		.kind_text = { 'v', 'e', 't', 'h' },
		.data = { SPAN(data, place_pid), INFO_DATA },
		.peer = { SPAN(peer, place_pid), VETH_PEER },
		.peer_name = { SPAN(peer_name, peer_name_text), LINK_NAME },
		.peer_name_text = "rtproof",
		.place = { SPAN(place, place_pid), LINK_PLACE_PID },
		.place_pid = pid,
	};

	if (sendto(netlink, &request, sizeof(request), 0, (const struct sockaddr *)&kernel, sizeof(kernel)) < 0 ||
	    recv(netlink, &answer, sizeof(answer), 0) < 0)
		return -errno;
	return answer.type == ERROR ? answer.error : -EPROTO;
}

/* By the old calls, which take the usual mask for an address of this class: 255.0.0.0. */
static int raise_device(int fd, uint32_t host)
{
	struct ifreq wish = { .ifr_flags = 0 };
	const struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(host) };

	memcpy(wish.ifr_name, device_name, sizeof(device_name));
	memcpy(&wish.ifr_addr, &address, sizeof(address));
	if (ioctl(fd, SIOCSIFADDR, &wish) < 0)
		return -errno;
	wish.ifr_flags = IFF_UP;
	return ioctl(fd, SIOCSIFFLAGS, &wish) < 0 ? -errno : 0;
}

/* The signal of the parent's death is lost with a change of credentials, and it may have died meanwhile. */
static int leave_network(void)
{
	pid_t parent = getppid();

	if (unshare(CLONE_NEWNET) == 0)
		return 0;
	if (errno != EPERM || unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return -errno;
	load_die_with(parent);
	return 0;
}

/* A socket stays in the namespace where it was opened, and holds it. */
static int connect_ends(int netlink, int far)
{
	if (netlink < 0 || far < 0 || unshare(CLONE_NEWNET) < 0)
		return -errno;
	int near = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = near < 0 ? -errno : 0;

	if (!err)
		err = make_pair(netlink, getpid());
	if (!err)
		err = raise_device(near, NETNS_NEAR);
	if (!err)
		err = raise_device(far, NETNS_FAR);
	close(near);
	return err;
}

int netns_cable(int type)
{
	int err = leave_network();

	if (err)
		return err;
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0), far = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	err = connect_ends(netlink, far);
	close(netlink);
	if (err)
		close(far);
	return err ? err : far;
}

int netns_trial(void)
{
	int status = 0;
	pid_t pid = load_spawn();

	if (pid == 0) {
		int far = netns_cable(SOCK_DGRAM);

		_exit(far < 0 ? -far : 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return pid < 0 ? pid : WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

static const char *reason(int err)
{
	if (err == -EPERM || err == -EACCES || err == -ENOSPC || err == -EUSERS) /* the last two: their number is limited */
		return "network namespaces are not allowed here";
	return err == -EOPNOTSUPP ? "the kernel has no veth devices" : strerror(-err);
}

bool netns_choose(struct load_order *order)
{
	static char note[LOAD_WHY];
	int err = netns_trial();

	snprintf(note, sizeof(note), "over 127.0.0.1 instead of two network namespaces: %s", reason(err));
	if (err)
		order->lack = note;
	else
		order->note = "between two network namespaces of its own";
	return !err;
}

int inet_drain(int fd, size_t bytes, struct load_slot *slot)
{
	char *block = load_map(bytes);
	size_t done = 0;

	while (block) {
		ssize_t n = read(fd, block, bytes);

		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		done += (size_t)n;
		slot->work += (uint32_t)(done / bytes);
		done %= bytes;
	}
	return -ENOMEM;
}
