/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not a test: times the sieve of the probe app outside of the agent, for tests to compare with.
 * usage: sieve_alone TO PASSES PAUSE_US    prints the nanoseconds of each pass; it sleeps between them as the probe's loop does
 */
#include "system/sys.h"

#include "probes/app/work.h"
#include "system/clock.h"

#include "check.h"

int main(int argc, char **argv)
{
	CHECK(argc == 4);
	uint32_t to = (uint32_t)atoi(argv[1]);
	int64_t pause_ns = atoi(argv[3]) * 1000LL;
	uint8_t *composite = calloc(to + 1, 1);

	CHECK(composite);
	sys_init();
	clock_init();
	for (int i = 0; i < atoi(argv[2]); i++) {
		CHECK(sys_sleep(CLOCK_MONOTONIC, 0, pause_ns) == 0);
		int64_t start_ns = clock_now_ns();
		uint32_t primes = sieve(composite, to);
		int64_t end_ns = clock_now_ns();

		CHECK(primes > 0);
		printf("%lld\n", (long long)(end_ns - start_ns));
	}
	free(composite);
	return EXIT_SUCCESS;
}
