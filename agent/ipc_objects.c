/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways of the ipc probe whose object is the kernel's and outlives the process: a process apart removes it, however this one ends.
 */
#include "sys.h"

#include "ipc_exchange.h"
#include "worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/sem.h>

/* A number that nobody else is likely to have taken: threads of one process, and processes of one machine, have their own. */
static int own_number(const struct exchange *exchange)
{
	return (int)(0x52000000u | ((unsigned int)exchange->worker->tid & 0xffffffu));
}

static int open_keeper(struct exchange *exchange)
{
	int err = undo_open(&exchange->undo);

	exchange->worker->failed_at = err ? "start the process that removes its kernel object" : "make its kernel object";
	return err;
}

static void close_keeper(struct exchange *exchange)
{
	undo_close(&exchange->undo);
}

static int open_mq(struct exchange *exchange)
{
	const long attributes[8] = { 0, 1, 1 }; /* flags, messages, bytes */
	char name[32];
	int err = open_keeper(exchange);

	snprintf(name, sizeof(name), "rtproof-%x", (unsigned int)own_number(exchange));
	if (!err)
		err = undo_queue(&exchange->undo, name);
	if (err)
		return err;
	exchange->ids[0] = sys_result(syscall(SYS_mq_open, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, attributes));
	if (exchange->ids[0] < 0)
		return exchange->ids[0];
	syscall(SYS_mq_unlink, name); /* it stays as long as it is open */
	return 0;
}

static int post_mq(struct exchange *exchange)
{
	return sys_result(syscall(SYS_MQ_SEND, exchange->ids[0], "", 1, 0, (void *)0));
}

static int wait_mq(struct exchange *exchange)
{
	char message;
	int n = sys_result(syscall(SYS_MQ_RECEIVE, exchange->ids[0], &message, 1, (void *)0, (void *)0));

	return n < 0 ? n : 0;
}

static void close_mq(struct exchange *exchange)
{
	channel_close_fds(exchange);
	close_keeper(exchange);
}

static const char *mq_unsupported(void)
{
	return channel_missing(sys_result(syscall(SYS_mq_unlink, "rtproof-there-is-none")),
			       "this kernel has no POSIX message queues (CONFIG_POSIX_MQUEUE)");
}

static int open_sysv(struct exchange *exchange)
{
	key_t key = own_number(exchange);
	int err = open_keeper(exchange);

	if (!err && semget(key, 0, 0) >= 0)
		err = -EEXIST; /* somebody else's: not to be removed */
	if (!err)
		err = undo_semaphores(&exchange->undo, key);
	if (err)
		return err;
	exchange->ids[0] = semget(key, 1, IPC_CREAT | IPC_EXCL | 0600);
	return exchange->ids[0] < 0 ? -errno : 0;
}

static int change_sysv(const struct exchange *exchange, short by)
{
	struct sembuf operation = { .sem_op = by };

	return semop(exchange->ids[0], &operation, 1) < 0 ? -errno : 0;
}

static int post_sysv(struct exchange *exchange)
{
	return change_sysv(exchange, 1);
}

static int wait_sysv(struct exchange *exchange)
{
	return change_sysv(exchange, -1);
}

static const char *sysv_unsupported(void)
{
	return channel_missing(semget(0x52000000, 0, 0) < 0 ? -errno : 0,
			       "this kernel has no System V semaphores (CONFIG_SYSVIPC)");
}

const struct channel channel_sysv = {
	CHANNEL_METHOD("sysv", sysv_unsupported, "System V semaphore: semop(); as svsematest of rt-tests"),
	.open = open_sysv, .post = post_sysv, .wait = wait_sysv, .close = close_keeper,
	.scarce_error = ENOSPC, .scarce = "there is no free one (kernel.sem)",
};
const struct channel channel_mq = {
	CHANNEL_METHOD("mq", mq_unsupported, "POSIX message queue: mq_send(); as pmqtest of rt-tests"),
	.open = open_mq, .post = post_mq, .wait = wait_mq, .close = close_mq,
	.scarce_error = EMFILE, .scarce = "too many files, or bytes in queues (ulimit -n, -q)",
};
