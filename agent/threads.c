/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "threads.h"

#include "word.h"
#include "worker.h"

#include <errno.h>
#include <sys/mman.h>

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
