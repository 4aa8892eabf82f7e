/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of 32 bits shared between threads. ARM cores before version 6 have no atomic instructions and are never more than one:
 * there an aligned load or store is whole, only the compiler has to be kept in order. (The library call that compilers make
 * instead takes a lock, on which a real-time thread could spin for ever.)
 */
#ifndef RTPROOF_WORD_H
#define RTPROOF_WORD_H

#include <stdint.h>

#if defined(__ARM_ARCH) && __ARM_ARCH < 6

static inline uint32_t word_load(const uint32_t *word)
{
	uint32_t value = *(const volatile uint32_t *)word;

	__asm__ volatile("" ::: "memory");
	return value;
}

static inline void word_store(uint32_t *word, uint32_t value)
{
	__asm__ volatile("" ::: "memory");
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

#endif
