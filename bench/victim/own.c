// SPDX-License-Identifier: Apache-2.0
/*
 * victim own KIND COUNT: a thread makes itself late, each time in the same known way, and leaves a line for each time:
 *   KIND TID BEGIN_NS END_NS RAN_NS
 * RAN_NS is how long the thread had a CPU. Times are of CLOCK_MONOTONIC. A timer's BEGIN_NS is when it was due.
 */
#define _GNU_SOURCE
#include "own.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST 512
#define BUFFER_BYTES (4 << 20)
#define PAGES 100
#define PAGE_BYTES 4096
#define LOOPS_OF_MS 180000 /* an instruction is a nanosecond, and a turn of the loop has five or six */
#define SLACK_NS 3000000

struct deadline {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static char *buffer;
static int zeroes;
static int64_t begin_ns;

static int64_t time_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t now_ns(void)
{
	return time_ns(CLOCK_MONOTONIC);
}

static void sleep_until(int64_t ns)
{
	struct timespec until = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Without a system call, which reading the clock may be. */
static void compute_ms(int ms)
{
	for (volatile long n = 0; n < (long)ms * LOOPS_OF_MS; n++)
		;
}

static void handle(int number)
{
	(void)number;
	compute_ms(2);
}

static volatile char *new_pages(size_t number)
{
	char *pages = mmap(NULL, number * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages != MAP_FAILED)
		madvise(pages, number * PAGE_BYTES, MADV_NOHUGEPAGE);
	return pages;
}

static volatile char *pages;

static void touch_one(void)
{
	pages[0] = 1;
	compute_ms(3);
}

static void touch_many(void)
{
	for (size_t n = 0; n < PAGES; n++)
		pages[n * PAGE_BYTES] = 1;
}

static void call(void)
{
	if (read(zeroes, buffer, BUFFER_BYTES) != BUFFER_BYTES)
		abort();
}

static void be_signalled(void)
{
	raise(SIGUSR1);
}

static void compute_long(void)
{
	compute_ms(30);
}

static void compute_short(void)
{
	compute_ms(9);
}

static void compute_for_ever(void)
{
	compute_ms(1300);
}

static void sleep_with_slack(void)
{
	begin_ns += 5000000;
	sleep_until(begin_ns);
}

static void *be_urgent(void *unused)
{
	struct sched_param urgent = { .sched_priority = 98 };

	(void)unused;
	if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &urgent))
		abort();
	prctl(PR_SET_NAME, "became_urgent");
	begin_ns = now_ns();
	compute_ms(2);
	return NULL;
}

static void become_urgent(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, be_urgent, NULL) || pthread_join(thread, NULL))
		abort();
}

static void prepare_signal(void)
{
	signal(SIGUSR1, handle);
}

static void prepare_deadline(void)
{
	struct deadline budget = { sizeof(budget), 6, 0, 0, 0, 2000000, 20000000, 20000000 };

	if (syscall(SYS_sched_setattr, 0, &budget, 0))
		abort();
}

static void prepare_fifo(void)
{
	struct sched_param priority = { .sched_priority = 10 };

	if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &priority))
		abort();
}

static void prepare_slack(void)
{
	prctl(PR_SET_TIMERSLACK, SLACK_NS);
}

static void prepare_nothing(void)
{
}

static const struct kind {
	const char *name;
	void (*prepare)(void), (*be_late)(void);
} kinds[] = {
	{ "one-page", prepare_nothing, touch_one },	{ "pages", prepare_nothing, touch_many },
	{ "call", prepare_nothing, call },		{ "signal", prepare_signal, be_signalled },
	{ "cpu-max", prepare_nothing, compute_long },	{ "deadline", prepare_deadline, compute_short },
	{ "rt-runtime", prepare_fifo, compute_for_ever }, { "slack", prepare_slack, sleep_with_slack },
	{ "became-urgent", prepare_nothing, become_urgent },
};

static int repeat(const struct kind *kind, long count)
{
	static struct { int64_t begin, end, ran; } all[MOST];

	kind->prepare();
	for (long n = 0; n < count; n++) {
		pages = new_pages(PAGES);
		sleep_until(now_ns() + 7000000 + n % 7 * 130000);
		int64_t ran = time_ns(CLOCK_THREAD_CPUTIME_ID);

		begin_ns = now_ns();
		kind->be_late();
		all[n].end = now_ns();
		all[n].ran = time_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
		all[n].begin = begin_ns;
		munmap((void *)pages, PAGES * PAGE_BYTES);
	}
	for (long n = 0; n < count; n++)
		printf("%s %ld %lld %lld %lld\n", kind->name, syscall(SYS_gettid), (long long)all[n].begin, (long long)all[n].end,
		       (long long)all[n].ran);
	return 0;
}

int own(const char *name, long count)
{
	zeroes = open("/dev/zero", O_RDONLY);
	buffer = malloc(BUFFER_BYTES);
	if (count < 1 || count > MOST || zeroes < 0 || !buffer)
		return 1;
	memset(buffer, 1, BUFFER_BYTES);
	if (mlockall(MCL_CURRENT))
		return 1;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(*kinds); n++)
		if (!strcmp(kinds[n].name, name))
			return repeat(&kinds[n], count);
	return 1;
}
