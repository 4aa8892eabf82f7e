/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two network namespaces joined by a cable (a pair of veth devices), made by system calls alone. This process is moved to the
 * near end; the far end lives in a socket. Both go, and the cable with them, when nobody has a socket or a process there any
 * more: however it ends, nothing stays.
 */
#ifndef RTPROOF_NETNS_H
#define RTPROOF_NETNS_H

#include "load.h"

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

#endif
