/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/ipc/wake_channel.h"

#include "measure/worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/sem.h>

const char *channel_missing(int err, const char *absent)
{
	if (err == -EPERM || err == -EACCES)
		return "this process may not use the system calls that it needs";
	return err == -ENOSYS ? absent : NULL;
}

void channel_close_fds(struct exchange *exchange)
{
	for (int i = 0; i < 2; i++)
		if (exchange->ids[i] >= 0)
			close(exchange->ids[i]);
}

/* Ways of the ipc probe that are a write() into one descriptor and a read() from another. */

static int open_pipe(struct exchange *exchange)
{
	return pipe2(exchange->ids, O_CLOEXEC) < 0 ? -errno : 0;
}

static int open_eventfd(struct exchange *exchange)
{
	exchange->ids[0] = eventfd(0, EFD_CLOEXEC);
	exchange->ids[1] = exchange->ids[0] < 0 ? -1 : fcntl(exchange->ids[0], F_DUPFD_CLOEXEC, 0);
	return exchange->ids[1] < 0 ? -errno : 0;
}

/* As many bytes as an eventfd wants. */
static int post_fd(struct exchange *exchange)
{
	const uint64_t one = 1;

	return write(exchange->ids[1], &one, sizeof(one)) < 0 ? -errno : 0;
}

static int wait_fd(struct exchange *exchange)
{
	uint64_t count;

	return read(exchange->ids[0], &count, sizeof(count)) < 0 ? -errno : 0;
}

static const char *eventfd_unsupported(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0)
		return channel_missing(-errno, "this kernel has no eventfd (CONFIG_EVENTFD)");
	close(fd);
	return NULL;
}

const struct channel channel_pipe = {
	CHANNEL_METHOD("pipe", NULL, "write() into a pipe"),
	.open = open_pipe, .post = post_fd, .wait = wait_fd, .close = channel_close_fds,
};
const struct channel channel_eventfd = {
	CHANNEL_METHOD("eventfd", eventfd_unsupported, "write() into an eventfd"),
	.open = open_eventfd, .post = post_fd, .wait = wait_fd, .close = channel_close_fds,
};

/*
 * Ways of the ipc probe whose object is the kernel's and outlives the process: a process apart removes it, however this one ends.
 */

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
		err = undo_semaphores(&exchange->undo, key, -1);
	if (err)
		return err;
	exchange->ids[0] = semget(key, 1, IPC_CREAT | IPC_EXCL | 0600);
	return exchange->ids[0] < 0 ? -errno : undo_semaphores(&exchange->undo, key, exchange->ids[0]);
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

/* Ways of the ipc probe that need nothing but memory which both threads see: a word, a condition, a semaphore; and a signal. */

static int open_nothing(struct exchange *exchange)
{
	(void)exchange;
	return 0;
}

static int post_futex(struct exchange *exchange)
{
	return sys_result(syscall(SYS_FUTEX, &exchange->turn, SYS_FUTEX_WAKE, 1, (void *)0, (void *)0, 0));
}

static int wait_futex(struct exchange *exchange)
{
	int err = 0;

	while (!is_posted(exchange) && err != -EINTR)
		err = sys_result(syscall(SYS_FUTEX, &exchange->turn, SYS_FUTEX_WAIT, SENDERS, (void *)0, (void *)0, 0));
	return is_posted(exchange) ? 0 : err;
}

static int open_cond(struct exchange *exchange)
{
	pthread_mutex_init(&exchange->mutex, NULL);
	return -pthread_cond_init(&exchange->posted, NULL);
}

static int post_cond(struct exchange *exchange)
{
	pthread_mutex_lock(&exchange->mutex); /* or it would come between the receiver's look and its sleep */
	pthread_mutex_unlock(&exchange->mutex);
	return -pthread_cond_signal(&exchange->posted);
}

static int wait_cond(struct exchange *exchange)
{
	pthread_mutex_lock(&exchange->mutex);
	while (!is_posted(exchange) && !word_load(&exchange->worker->stop))
		pthread_cond_wait(&exchange->posted, &exchange->mutex);
	pthread_mutex_unlock(&exchange->mutex);
	return is_posted(exchange) ? 0 : -EINTR;
}

static void close_cond(struct exchange *exchange)
{
	pthread_cond_destroy(&exchange->posted);
}

static int open_sem(struct exchange *exchange)
{
	return sem_init(&exchange->semaphore, 0, 0) < 0 ? -errno : 0;
}

static int post_sem(struct exchange *exchange)
{
	return sem_post(&exchange->semaphore) < 0 ? -errno : 0;
}

static int wait_sem(struct exchange *exchange)
{
	return sem_wait(&exchange->semaphore) < 0 ? -errno : 0;
}

static int open_signal(struct exchange *exchange)
{
	sigemptyset(&exchange->signals);
	sigaddset(&exchange->signals, SIGRTMIN);
	sigaddset(&exchange->signals, WORKER_STOP_SIGNAL);
	return -pthread_sigmask(SIG_BLOCK, &exchange->signals, NULL);
}

static int post_signal(struct exchange *exchange)
{
	return sys_result(syscall(SYS_tgkill, getpid(), exchange->worker->tid, SIGRTMIN));
}

static int wait_signal(struct exchange *exchange)
{
	siginfo_t info;
	int signal = sys_sigwait(&exchange->signals, &info);

	return signal == WORKER_STOP_SIGNAL ? -EINTR : signal < 0 ? signal : 0;
}

const struct channel channel_futex = {
	CHANNEL_METHOD("futex", NULL, "FUTEX_WAKE on a word, as all of pthreads uses it"),
	.open = open_nothing, .post = post_futex, .wait = wait_futex,
};
const struct channel channel_cond = {
	CHANNEL_METHOD("cond", NULL, "pthread_cond_signal()"),
	.open = open_cond, .post = post_cond, .wait = wait_cond, .close = close_cond, .deaf = true,
};
const struct channel channel_sem = {
	CHANNEL_METHOD("sem", NULL, "POSIX semaphore: sem_post()"),
	.open = open_sem, .post = post_sem, .wait = wait_sem,
};
const struct channel channel_signal = {
	CHANNEL_METHOD("signal", NULL, "a signal to the thread, taken by sigwaitinfo(); as sigwaittest of rt-tests"),
	.open = open_signal, .post = post_signal, .wait = wait_signal,
	.scarce_error = EAGAIN, .scarce = "too many signals are pending (ulimit -i)",
};
