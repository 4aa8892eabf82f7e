/* SPDX-License-Identifier: Apache-2.0 */
/* Ways of the ipc probe that need nothing but memory which both threads see: a word, a condition, a semaphore; and a signal. */
#include "sys.h"

#include "ipc_exchange.h"
#include "worker.h"

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
	CHANNEL_METHOD("futex", NULL, "FUTEX_WAKE on a word, which everything of pthreads is made of"),
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
