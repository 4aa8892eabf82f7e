/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to preload into QEMU that delays its threads by 1 to 50 us, where a busy host may do so too: before a jump out of the
 * guest's code (1 in 20), after a wait for a condition and after a poll (1 in 2), before a poll (1 in 4), before a lock (1 in 50).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#define PUBLIC __attribute__((visibility("default")))
#ifndef MOST_NS
#define MOST_NS 50000
#endif

static __thread uint64_t state;

PUBLIC void checked_jump(sigjmp_buf place, int value) __asm__("__longjmp_chk") __attribute__((noreturn));
PUBLIC void siglongjmp(sigjmp_buf place, int value) __attribute__((noreturn));

/* xorshift64, seeded by the time: other delays in each run. */
static uint64_t random_number(void)
{
	struct timespec now;

	if (!state) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		state = ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) ^ (uintptr_t)&state ^ 1;
	}
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 16;
}

static void delay_one_in(uint64_t count)
{
	struct timespec pause = { 0, 0 };

	if (random_number() % count)
		return;
	pause.tv_nsec = 1000 + (long)(random_number() % (MOST_NS - 1000));
	nanosleep(&pause, NULL);
}

#define NEXT(type, name)                                                                                                               \
	static type next;                                                                                                              \
	if (!next)                                                                                                                     \
		*(void **)&next = dlsym(RTLD_NEXT, name)

typedef void (*jump)(sigjmp_buf, int) __attribute__((noreturn));
typedef int (*lock)(pthread_mutex_t *);
typedef int (*wait)(pthread_cond_t *, pthread_mutex_t *);
typedef int (*poll_files)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

PUBLIC void checked_jump(sigjmp_buf place, int value)
{
	NEXT(jump, "__longjmp_chk");
	delay_one_in(20);
	next(place, value);
}

PUBLIC void siglongjmp(sigjmp_buf place, int value)
{
	NEXT(jump, "siglongjmp");
	delay_one_in(20);
	next(place, value);
}

PUBLIC int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	NEXT(lock, "pthread_mutex_lock");
	delay_one_in(50);
	return next(mutex);
}

PUBLIC int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	int result;

	NEXT(wait, "pthread_cond_wait");
	result = next(condition, mutex);
	delay_one_in(2);
	return result;
}

PUBLIC int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *signals)
{
	int result;

	NEXT(poll_files, "ppoll");
	delay_one_in(4);
	result = next(files, count, timeout, signals);
	delay_one_in(2);
	return result;
}
