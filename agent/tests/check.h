/* SPDX-License-Identifier: Apache-2.0 */
/* What every test program needs: a failed check says where it stands and ends the program, a skipped test says why. */
#ifndef RTPROOF_TESTS_CHECK_H
#define RTPROOF_TESTS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))
#define SKIP(reason) check_skipped(reason)

enum { EXIT_SKIPPED = 77 };

static inline _Noreturn void check_failed(const char *file, int line, const char *condition)
{
	printf("%s:%d: not true: %s\n", file, line, condition);
	exit(EXIT_FAILURE);
}

static inline _Noreturn void check_skipped(const char *reason)
{
	printf("%s\n", reason);
	exit(EXIT_SKIPPED);
}

/* Numbers that look random and are the same everywhere: the generator of Knuth's MMIX, whose high bits are the better ones. */
static inline uint64_t random_bits(uint64_t *state)
{
	*state = *state * 6364136223846793005U + 1442695040888963407U;
	return *state ^ *state >> 32;
}

static inline uint32_t random_below(uint64_t *state, uint32_t bound)
{
	return (uint32_t)((random_bits(state) >> 16) % bound);
}

#endif
