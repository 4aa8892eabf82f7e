/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks for loads: two network namespaces joined by a cable, and the connections between the two ends of a load. The
 * cable is a pair of veth devices, made by system calls alone. This process moves to the near end; a socket keeps the far
 * end alive. When no process and no socket uses a namespace any more, the kernel removes it and the cable, so nothing stays.
 */
#ifndef RTPROOF_NETWORK_H
#define RTPROOF_NETWORK_H

#include "loads/load.h"
#include "system/inet.h"

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

/* Reads for ever, and counts each so many bytes; returns -errno, -EPIPE when the other side has ended. */
int inet_drain(int fd, size_t bytes, struct load_slot *slot);

#endif
