/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of 32 bits shared between threads. ARM before version 6 has no atomic instructions: there an aligned access is whole, and
 * the kernel offers a memory barrier at a fixed address (Documentation/arch/arm/kernel_user_helpers.rst), which does the right
 * thing even where such a build runs on a newer processor. What compilers call instead is a library function with a lock, on
 * which a real-time thread could spin for ever.
 */
#ifndef RTPROOF_WORD_H
#define RTPROOF_WORD_H

#include <stdint.h>

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

#endif
