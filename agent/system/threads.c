/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/threads.h"

#include "system/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>

enum { STACK_BYTES = 128 * 1024, TRIAL_BYTES = 1024 * 1024 };

static void ignore(int signal)
{
	(void)signal;
}

int thread_start(pthread_t *thread, void *(*entry)(void *), void *argument)
{
	struct sigaction wake = { .sa_handler = ignore }; /* without SA_RESTART: it ends a sleep */
	pthread_attr_t attributes;

	sigaction(WORKER_STOP_SIGNAL, &wake, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	int err = -pthread_create(thread, &attributes, entry, argument);

	pthread_attr_destroy(&attributes);
	return err;
}

void thread_end(pthread_t thread, uint32_t *stop)
{
	word_store(stop, 1);
	pthread_kill(thread, WORKER_STOP_SIGNAL);
	pthread_join(thread, NULL);
}

/*
 * With a limit, MCL_FUTURE would let this call succeed and make the next allocation fail. Everything that the measuring threads
 * touch is there already, so locking that is enough.
 */
int lock_memory(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		return mlockall(MCL_CURRENT) < 0 ? -errno : 0;
	void *trial = mmap(NULL, TRIAL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (trial != MAP_FAILED)
		return munmap(trial, TRIAL_BYTES) < 0 ? -errno : 0;
	munlockall();
	return mlockall(MCL_CURRENT) < 0 ? -errno : 0;
}

void gate_init(struct gate *gate, int done_fd)
{
	pthread_mutex_init(&gate->mutex, NULL);
	pthread_cond_init(&gate->changed, NULL);
	gate->ready = 0;
	gate->origin_ns = 0;
	gate->done_fd = done_fd;
}

void gate_arrive(struct gate *gate)
{
	pthread_mutex_lock(&gate->mutex);
	gate->ready++;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->mutex);
}

void gate_await(struct gate *gate, int n)
{
	pthread_mutex_lock(&gate->mutex);
	while (gate->ready < n)
		pthread_cond_wait(&gate->changed, &gate->mutex);
	pthread_mutex_unlock(&gate->mutex);
}

void gate_open(struct gate *gate, int64_t origin_ns)
{
	pthread_mutex_lock(&gate->mutex);
	gate->origin_ns = origin_ns;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->mutex);
}

int64_t gate_pass(struct gate *gate)
{
	pthread_mutex_lock(&gate->mutex);
	while (!gate->origin_ns)
		pthread_cond_wait(&gate->changed, &gate->mutex);
	int64_t origin_ns = gate->origin_ns;

	pthread_mutex_unlock(&gate->mutex);
	return origin_ns;
}

int signals_open(char *why, size_t room)
{
	sigset_t signals, blocked;
	struct sigaction nothing = { .sa_handler = SIG_IGN };

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGCONT);
	/* setitimer()'s signal goes to any thread that has it unblocked; only the one that waits for it may get it. */
	blocked = signals;
	sigaddset(&blocked, SIGALRM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigaction(SIGPIPE, &nothing, NULL);
	sigaction(SIGXFSZ, &nothing, NULL);
	int fd = sys_result(signalfd(-1, &signals, SFD_CLOEXEC));

	if (fd < 0)
		snprintf(why, room, "signals can't be read: %s", strerror(-fd));
	return fd;
}

const char *policy_name(int policy)
{
	switch (policy) {
	case POLICY_OTHER:
		return "other";
	case POLICY_FIFO:
		return "fifo";
	case POLICY_RR:
		return "rr";
	case POLICY_DEADLINE:
		return "deadline";
	case 3:
		return "batch";
	case POLICY_IDLE:
		return "idle";
	default:
		return "unknown";
	}
}

int policy_set_deadline(int64_t period_ns)
{
	/* A quarter of the period: enough for a loop that only reads a clock, and four threads still fit on a CPU. */
	struct sys_sched_attr attributes = {
		.size = sizeof(attributes),
		.policy = POLICY_DEADLINE,
		.flags = 1, /* SCHED_FLAG_RESET_ON_FORK */
		.runtime = (uint64_t)period_ns / 4,
		.deadline = (uint64_t)period_ns,
		.period = (uint64_t)period_ns,
	};

#ifdef SYS_sched_setattr
	return sys_result(syscall(SYS_sched_setattr, 0, &attributes, 0));
#else
	(void)attributes;
	return -ENOSYS;
#endif
}

/* Where the number of thread_told() begins in the content. NULL: the kernel does not tell. */
static char *find_told(int tid, const char *file, const char *key, char *content, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, file);
	int length = text_read_file(path, content, size - 1);

	content[length < 0 ? 0 : length] = '\0';
	char *line = strstr(content, key);
	char *value = line ? strchr(line, ':') : NULL;

	return value ? value + 1 : NULL;
}

int64_t thread_told(int tid, const char *file, const char *key)
{
	char content[4096], *value = find_told(tid, file, key, content, sizeof(content));

	return value ? strtoll(value, NULL, 10) : -1;
}

int64_t thread_fair_ns(int tid)
{
	char content[4096], *end = NULL, *value = find_told(tid, "sched", "se.vruntime", content, sizeof(content));
	int64_t ms = value ? strtoll(value, &end, 10) : -1;

	return value && *end == '.' ? ms * 1000000 + strtoll(end + 1, NULL, 10) : -1;
}
