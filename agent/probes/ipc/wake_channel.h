/* SPDX-License-Identifier: Apache-2.0 */
/* What the two threads of the probe ipc share, and the ways in which one of them can wake the other. */
#ifndef RTPROOF_IPC_WAKE_CHANNEL_H
#define RTPROOF_IPC_WAKE_CHANNEL_H

#include "probes/common/stimulus.h"
#include "probes/probe.h"
#include "system/cpus.h"
#include "system/threads.h"
#include "system/undo.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

enum turn { SENDERS, RECEIVERS };

struct exchange;

/*
 * One way to wake. open() fills in what close() frees, whether it failed or not. wait() ends with the post that was or will be
 * made, or with -EINTR. 0 or -errno.
 */
struct channel {
	struct method method;
	int (*open)(struct exchange *exchange);
	int (*post)(struct exchange *exchange);
	int (*wait)(struct exchange *exchange);
	void (*close)(struct exchange *exchange); /* may be absent */
	bool deaf;          /* no signal ends wait(), but one more post() when the worker shall stop */
	int scarce_error;   /* the errno of a limit on what it is made of, */
	const char *scarce; /* and what it says in place of strerror() */
};

struct exchange {
	const struct channel *channel;
	struct worker *worker;
	uint32_t turn; /* whose the stimulus is */
	struct stimulus stimulus;
	uint32_t left;  /* the receiver will take no more */
	uint32_t error; /* why a post failed */

	/* The sender's. */
	pthread_t sender;
	bool sends;
	struct cpus cpus; /* empty: the receiver's */
	sem_t ready;
	int refused; /* what it was refused, before it is ready */
	int policy, priority, cpu;
	int64_t latest_ns; /* how late it was at most */
	uint64_t skipped;  /* due times at which it was a period late */

	/* The channel's. */
	int ids[2];
	struct undo undo;
	pthread_mutex_t mutex;
	pthread_cond_t posted;
	sem_t semaphore;
	sigset_t signals;
};

static inline bool is_posted(const struct exchange *exchange)
{
	return word_load(&exchange->turn) == RECEIVERS;
}

#define CHANNEL_METHOD(method_name, missing, text)                                                          \
	{ .name = (method_name), .help = (text), .external = true, .no_timer = true, .no_deadline = true, \
	  .unsupported = (missing) }

/* Why the system calls of a channel can't be had, by the errno of one: absent, that they are forbidden, or NULL. */
const char *channel_missing(int err, const char *absent);

void channel_close_fds(struct exchange *exchange);

extern const struct channel channel_futex, channel_cond, channel_sem, channel_signal;
extern const struct channel channel_sysv, channel_mq;
extern const struct channel channel_pipe, channel_eventfd;

#endif
