/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets at addresses of IPv4, given as numbers of this machine's byte order; and whole blocks over them. */
#ifndef RTPROOF_INET_H
#define RTPROOF_INET_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
