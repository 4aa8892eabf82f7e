/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: ingest FILE N    does what the agent's writer does with N activations, one per millisecond, without samples and with
 * two limits, checkpoints and slices included; prints nanoseconds of CPU time for each activation.
 */
#include "system/sys.h"

#include "measure/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { VALUES = 1 << 20, CHECKPOINT = 10000, SLICE = 60 };

static struct capture capture;
static struct record record;
static struct above above;
static int64_t values[VALUES];
static const int64_t limits_ns[] = { 500000, 1000000 };

/* 70 us and more, as the sum of nine evenly distributed numbers: about as wide as the values of bench/longrun.py. */
static int64_t latency(uint64_t *state)
{
	int64_t sum = 70000;

	for (int i = 0; i < 9; i++) {
		*state = *state * 6364136223846793005 + 1442695040888963407;
		sum += (int64_t)(*state >> 33) % 60000;
	}
	return sum;
}

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	uint64_t state = 1;

	if (argc != 3 || record_open(&record, argv[1]))
		return EXIT_FAILURE;
	long n = strtol(argv[2], NULL, 10);

	for (int i = 0; i < VALUES; i++)
		values[i] = latency(&state);
	above_open(&above, 0, limits_ns, 2, 0);
	above_announce(&above, &record, 0);
	capture_open(&capture, 0, true, false, 1000000, 0);
	capture.above = &above;

	double begin = cpu_ns();

	for (long i = 0; i < n; i++) {
		const struct ring_entry entry = { values[i % VALUES], 0, RING_SAMPLE };

		if (capture_add(&capture, &record, &entry))
			return EXIT_FAILURE;
		if (i % CHECKPOINT == CHECKPOINT - 1)
			capture_flush(&capture, &record, i / CHECKPOINT % SLICE == SLICE - 1);
	}
	printf("%.3f\n", (cpu_ns() - begin) / (double)n);
	return record_close(&record) ? EXIT_FAILURE : EXIT_SUCCESS;
}
