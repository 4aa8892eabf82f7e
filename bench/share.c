/* SPDX-License-Identifier: Apache-2.0
 * usage: share CPUS PACE_US
 *
 * Runs a thread of the policy SCHED_FIFO on each CPU for 200 ms. Each reads the clock in a loop and counts its loops and the gaps
 * between two readings. In a guest whose CPUs take turns, a gap is the time in which the others had their turns, or the tick. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST_CPUS 8
#define LENGTH_NS 200000000
#define SHORT_GAP_NS 3000
/* Until then all threads run, also those of a slow guest. */
#define SOON_NS 300000000

struct task {
	int cpu;
	int64_t pace_ns, begin_ns, loops, short_gaps, long_gaps, longest_ns;
	pthread_t thread;
};

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

static void *look(void *context)
{
	struct task *task = context;
	int64_t before = now_ns();
	while (before < task->begin_ns)
		before = now_ns();
	while (before < task->begin_ns + LENGTH_NS) {
		int64_t now = now_ns(), gap = now - before;
		task->loops++;
		task->short_gaps += gap >= SHORT_GAP_NS;
		task->long_gaps += gap >= 3 * task->pace_ns;
		if (gap > task->longest_ns)
			task->longest_ns = gap;
		before = now;
	}
	return NULL;
}

static int start(struct task *task)
{
	pthread_attr_t how;
	cpu_set_t here;
	CPU_ZERO(&here);
	CPU_SET(task->cpu, &here);
	pthread_attr_init(&how);
	pthread_attr_setinheritsched(&how, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&how, SCHED_FIFO);
	pthread_attr_setschedparam(&how, &(struct sched_param){.sched_priority = 50});
	pthread_attr_setaffinity_np(&how, sizeof here, &here);
	return pthread_create(&task->thread, &how, look, task);
}

int main(int count, char **words)
{
	struct task tasks[MOST_CPUS] = {0};
	int cpus = count == 3 ? atoi(words[1]) : 0;
	int64_t begin_ns = now_ns() + SOON_NS;
	if (cpus < 1 || cpus > MOST_CPUS) {
		fprintf(stderr, "usage: %s CPUS PACE_US\n", words[0]);
		return 2;
	}
	/* This thread stays on CPU 0, and the thread of CPU 0 starts last: a thread of SCHED_FIFO leaves no time for this one. */
	cpu_set_t first;
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof first, &first);
	for (int cpu = cpus - 1; cpu >= 0; cpu--) {
		tasks[cpu] = (struct task){.cpu = cpu, .pace_ns = atoi(words[2]) * (int64_t)1000, .begin_ns = begin_ns};
		int code = start(&tasks[cpu]);
		if (code) {
			fprintf(stderr, "no thread can be started on CPU %d: error %d\n", cpu, code);
			return 1;
		}
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct task *task = &tasks[cpu];
		pthread_join(task->thread, NULL);
		printf("cpu %d loops %lld gaps_3us %lld gaps_3_paces %lld longest_ns %lld\n", cpu, (long long)task->loops,
		       (long long)task->short_gaps, (long long)task->long_gaps, (long long)task->longest_ns);
	}
	return 0;
}
