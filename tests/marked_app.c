/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application that says itself when it works: marked_app MARKER N. It writes "begin I" into the file MARKER, works for some time in
 * work(), and writes "end". Then it sleeps for a millisecond. It prints for each time how long work() took by its own clock, in ns.
 * Its first mark is an end, each fiftieth begin comes twice, and another thread writes "end" all the time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000, WORK_NS = 50000, LONG_NS = 400000, TWICE = 50 };

static int marker;
static atomic_int over;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

/* The trace of another instance may be off, and then this fails. */
static void mark(const char *text)
{
	if (write(marker, text, strlen(text)) < 0)
		return;
}

__attribute__((noinline)) int64_t work(int64_t length_ns)
{
	int64_t begin_ns = now_ns(), end_ns = begin_ns;

	while (end_ns - begin_ns < length_ns)
		end_ns = now_ns();
	return end_ns - begin_ns;
}

static void *disturb(void *nothing)
{
	const struct timespec pause = { .tv_nsec = 300000 };

	prctl(PR_SET_NAME, "app-other");
	while (!over) {
		mark("end");
		nanosleep(&pause, NULL);
	}
	return nothing;
}

int main(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	char text[32];
	pthread_t other;

	if (argc != 3)
		return 2;
	marker = open(argv[1], O_WRONLY | O_CLOEXEC);
	prctl(PR_SET_NAME, "app-marked");
	if (marker < 0 || pthread_create(&other, NULL, disturb, NULL))
		return 1;
	mark("end");
	for (int i = 0, n = atoi(argv[2]); i < n; i++) {
		snprintf(text, sizeof(text), "begin %d", i);
		if (i % TWICE == 0)
			mark("begin");
		mark(text);
		int64_t length_ns = work(i % 10 ? WORK_NS : LONG_NS);

		mark("end");
		printf("%lld\n", (long long)length_ns);
		nanosleep(&pause, NULL);
	}
	over = 1;
	return pthread_join(other, NULL);
}
