/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of this process: how they start and end, the words of memory that they share, the gate where they wait for each other,
 * their scheduling policies, and the signals that ask all of them to end.
 */
#ifndef RTPROOF_THREADS_H
#define RTPROOF_THREADS_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Words of 32 bits shared between threads. ARM before version 6 has no atomic instructions: there an aligned access is whole, and
 * the kernel offers a memory barrier at a fixed address (Documentation/arch/arm/kernel_user_helpers.rst), which does the right
 * thing even where such a build runs on a newer processor. What compilers call instead is a library function with a lock, on
 * which a real-time thread could spin for ever.
 */

#if defined(__ARM_ARCH) && __ARM_ARCH < 6

#define WORD_BARRIER() ((void (*)(void))0xffff0fa0)()

static inline uint32_t word_load(const uint32_t *word)
{
	uint32_t value = *(const volatile uint32_t *)word;

	WORD_BARRIER();
	return value;
}

static inline void word_store(uint32_t *word, uint32_t value)
{
	WORD_BARRIER();
	*(volatile uint32_t *)word = value;
}

#else

/* What was stored before word_store() is seen after a word_load() of the value that it stored. */
static inline uint32_t word_load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void word_store(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

#endif

/* Wakes a thread that waits for something long, so that it sees that it shall stop. */
#define WORKER_STOP_SIGNAL SIGUSR1

/* A thread with a stack of known size: locked memory makes every byte of the stack resident. 0 or -errno. */
int thread_start(pthread_t *thread, void *(*entry)(void *), void *argument);

/* Sets the word that it looks at, ends the sleep that it may be in, and joins it. */
void thread_end(pthread_t thread, uint32_t *stop);

/* Locks what is there and, if the limit on locked memory allows it, what will come. 0 or -errno. */
int lock_memory(void);

/* Where threads wait for each other and for the origin of time. */
struct gate {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int ready;         /* threads that are set up, or have failed to */
	int64_t origin_ns; /* CLOCK_MONOTONIC of the origin; 0: not open yet */
	int done_fd;       /* a byte is written here when a measuring thread ends */
};

void gate_init(struct gate *gate, int done_fd);

/* Says that one more thread is ready. */
void gate_arrive(struct gate *gate);

/* Waits for n threads to arrive. */
void gate_await(struct gate *gate, int n);

void gate_open(struct gate *gate, int64_t origin_ns);

/* Waits until the gate is open; answers the origin. */
int64_t gate_pass(struct gate *gate);

/* Policies by their kernel numbers. */
enum policy { POLICY_OTHER = 0, POLICY_FIFO = 1, POLICY_RR = 2, POLICY_IDLE = 5, POLICY_DEADLINE = 6 };

/* The kernel adds this to the policy's number where children do not inherit the policy. */
enum { POLICY_RESET_ON_FORK = 0x40000000 };

const char *policy_name(int policy);

/* Gives the calling thread the policy deadline. 0 or -errno. */
int policy_set_deadline(int64_t period_ns);

/* The number behind a word and a colon in a file of /proc about a thread of this process. -1: the kernel does not tell. */
int64_t thread_told(int tid, const char *file, const char *key);

/*
 * What the fair scheduler keeps of a thread of this process: it changes while the thread runs there, and stays as it was while the
 * thread has a real-time policy. -1: the kernel does not tell (without CONFIG_SCHED_DEBUG).
 */
int64_t thread_fair_ns(int tid);

/*
 * The signals that ask the agent to end, and the signal of its children, as a file to read from:
 * SIGINT, SIGTERM, SIGHUP and SIGCHLD of every thread; SIGALRM, SIGPIPE and SIGXFSZ disturb nobody any more. Or -errno with the reason as a
 * sentence in why.
 */
int signals_open(char *why, size_t room);

#endif
