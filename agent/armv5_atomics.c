// SPDX-License-Identifier: Apache-2.0
/*
 * ARM before v6 has no compare-and-swap instruction. The kernel offers one at a fixed address (user helper
 * __kuser_cmpxchg, Documentation/arch/arm/kernel_user_helpers.rst, since 2.6.12), and compilers call the functions below
 * for every 4-byte atomic access. gcc brings them along, zig does not. Weak, so that a compiler's own come first.
 */
#include <stdint.h>

#if defined(__arm__) && __ARM_ARCH < 6

typedef int kuser_cmpxchg(uint32_t expected, uint32_t wanted, volatile uint32_t *at);
#define KUSER_CMPXCHG ((kuser_cmpxchg *)0xffff0fc0)

/* Swap *at for what the expression makes of `old`; evaluates to the value that was there. */
#define REPLACE(at, old, wanted) \
	do { \
		old = *(at); \
	} while (KUSER_CMPXCHG(old, (wanted), (at)) != 0)

#define SYNC(name, expression) \
	uint32_t name##_4(volatile uint32_t *at, uint32_t x) __asm__("__sync_" #name "_4"); \
	__attribute__((weak, used)) uint32_t name##_4(volatile uint32_t *at, uint32_t x) \
	{ \
		uint32_t old; \
		REPLACE(at, old, expression); \
		return old; \
	}

SYNC(lock_test_and_set, x)
SYNC(fetch_and_add, old + x)
SYNC(fetch_and_sub, old - x)
SYNC(fetch_and_or, old | x)
SYNC(fetch_and_and, old & x)

uint32_t compare_and_swap_4(volatile uint32_t *at, uint32_t expected, uint32_t wanted)
	__asm__("__sync_val_compare_and_swap_4");
__attribute__((weak, used)) uint32_t compare_and_swap_4(volatile uint32_t *at, uint32_t expected, uint32_t wanted)
{
	uint32_t old;

	do {
		old = *at;
	} while (old == expected && KUSER_CMPXCHG(expected, wanted, at) != 0);
	return old;
}

#endif
