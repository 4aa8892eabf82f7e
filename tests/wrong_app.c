/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real-time application that does wrong whatever it is not told to do: wrong_app [policy] [affinity] [slack] [lock] [heap]. Each word
 * has it do one thing right: SCHED_FIFO, one CPU, no timer slack, mlockall() of what there is, and of what malloc() gets later. It
 * prints "ready CPU", where CPU is the last one that it may use, then sleeps for a minute at most.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { LIFE_S = 60, PRIORITY = 10, BLOCK = 16384, BLOCKS = 256, LITTLE_NS = 1 };

static bool is_told(int argc, char **argv, const char *word)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], word))
			return true;
	return false;
}

static int last_cpu(cpu_set_t *allowed)
{
	int last = -1;

	if (sched_getaffinity(0, sizeof(*allowed), allowed))
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, allowed))
			last = cpu;
	return last;
}

static int set_up(int argc, char **argv, int cpu)
{
	const struct sched_param priority = { .sched_priority = PRIORITY };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (is_told(argc, argv, "affinity") && sched_setaffinity(0, sizeof(one), &one))
		return 1;
	if (is_told(argc, argv, "slack") && prctl(PR_SET_TIMERSLACK, LITTLE_NS))
		return 1;
	if (is_told(argc, argv, "lock") && mlockall(is_told(argc, argv, "heap") ? MCL_CURRENT | MCL_FUTURE : MCL_CURRENT))
		return 1;
	return is_told(argc, argv, "policy") && sched_setscheduler(0, SCHED_FIFO, &priority);
}

int main(int argc, char **argv)
{
	cpu_set_t allowed;
	int cpu = last_cpu(&allowed);

	alarm(LIFE_S);
	if (cpu < 0 || set_up(argc, argv, cpu)) {
		perror("wrong_app");
		return 2;
	}
	for (int i = 0; i < BLOCKS; i++) { /* 4 MiB of heap, in blocks that malloc() does not map one by one */
		char *block = malloc(BLOCK);

		if (!block)
			return 2;
		memset(block, i, BLOCK);
	}
	printf("ready %d\n", cpu);
	fflush(stdout);
	for (;;)
		pause();
}
