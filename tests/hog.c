/* SPDX-License-Identifier: Apache-2.0 */
/* usage: hog CPU PRIORITY SECONDS [TID]    takes the real-time policy from thread TID and spins with FIFO on the CPU */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <time.h>

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct sched_param priority = { 0 };
	double end_s = argc > 3 ? now_s() + atof(argv[3]) : 0;
	cpu_set_t cpus;

	if (argc < 4 || (argc > 4 && sched_setscheduler(atoi(argv[4]), SCHED_OTHER, &priority)))
		return EXIT_FAILURE;
	priority.sched_priority = atoi(argv[2]);
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[1]), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) || sched_setscheduler(0, SCHED_FIFO, &priority))
		return EXIT_FAILURE;
	while (now_s() < end_s)
		;
	return EXIT_SUCCESS;
}
