/* SPDX-License-Identifier: Apache-2.0 */
/* Threads with a stack of known size: locked memory makes every byte of it resident. */
#ifndef RTPROOF_THREADS_H
#define RTPROOF_THREADS_H

#include <pthread.h>
#include <stdint.h>

/* 0 or -errno. */
int thread_start(pthread_t *thread, void *(*entry)(void *), void *argument);

/* Sets the word that it looks at, ends the sleep that it may be in, and joins it. */
void thread_end(pthread_t thread, uint32_t *stop);

/* Locks what is there and, if the limit on locked memory allows it, what will come. 0 or -errno. */
int lock_memory(void);

#endif
