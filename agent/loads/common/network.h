/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks for loads: two network namespaces joined by a cable, and the connections between the two ends of a load. The
 * cable is a pair of veth devices, made by system calls alone. This process moves to the near end; a socket keeps the far
 * end alive. When no process and no socket uses a namespace any more, the kernel removes it and the cable, so nothing stays.
 */
#ifndef RTPROOF_NETWORK_H
#define RTPROOF_NETWORK_H

#include "loads/load.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses of the ends, as numbers of this machine's byte order: 10.0.0.1 and 10.0.0.2, which only these two can see. */
enum { NETNS_NEAR = 0x0a000001, NETNS_FAR = 0x0a000002 };

/*
 * Answers a socket of this type (of AF_INET) at the far end; or a negative errno, after which this process may be without any
 * network. Without privilege it goes into a user namespace of its own, where the system allows it.
 */
int netns_cable(int type);

/* Tries it in a process of its own: 0 or a negative errno, such as -EPERM, or -EOPNOTSUPP where there is no veth. */
int netns_trial(void);

/* For a load that is alone: whether it shall use a cable, or 127.0.0.1 because there can be none. Notes the one, or why
 * it lacks it. */
bool netns_choose(struct load_order *order);

/* Sockets of loads: at addresses of IPv4, given as numbers of this machine's byte order; and whole blocks over them. */

enum { INET_HERE = 0x7f000001 };

struct sockaddr_in inet_address(uint32_t host, int port);

/* "192.168.1.2". 0 or -EINVAL, also for an address that stands for none or for many. */
int inet_parse(const char *text, uint32_t *host);

/*
 * Gives a socket an address, whose port is filled in if it is 0; a stream listens. Answers the socket, which may be the -errno
 * of its opening, or -errno when it is closed again.
 */
int inet_bind(int fd, struct sockaddr_in *address);

/* A socket at a free port of 127.0.0.1, which nothing outside of this machine can reach. */
int inet_open_here(int type, struct sockaddr_in *address);

/* A stream to this address; -ETIMEDOUT if nobody answers for so long. */
int inet_connect(const struct sockaddr_in *address, int timeout_ms);

/* Both ends of a stream to a listening socket of this process; ends[0] was accepted. Nobody else may come between. */
int inet_pair(int listener, const struct sockaddr_in *address, int *ends);

/* Reading and writing shall give up after a time in which nothing goes: -EAGAIN. */
void inet_limit(int fd, int timeout_ms);

/* All bytes of a block: 0 or -errno, -EPIPE when the other side has ended. */
int inet_read(int fd, void *block, size_t bytes);
int inet_write(int fd, const void *block, size_t bytes);

/* Reads for ever, and counts each so many bytes; returns -errno, -EPIPE when the other side has ended. */
int inet_drain(int fd, size_t bytes, struct load_slot *slot);

#endif
