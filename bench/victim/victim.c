// SPDX-License-Identifier: Apache-2.0
/*
 * victim ORIGIN_NS COUNT: a periodic thread that makes itself late in two known ways, by turns. It touches pages for the
 * first time, or it takes a lock that a thread of ordinary priority holds. The lock hands its priority on.
 *
 * Due times are ORIGIN_NS plus half a period, plus whole periods, of CLOCK_MONOTONIC. Each activation leaves two lines:
 *   activation TID DUE_NS END_NS
 *   KIND BEGIN_NS END_NS TID      what made it late, and the thread that did it
 *
 * victim urgent TID: gives a thread the real-time priority 97, which modules may not do in Linux 5.9 to 5.13.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 4000000LL
#define HELD_EARLY_NS 20000 /* the lock is taken this long before the due time */
#define AWAKE_NS 60000	    /* and its holder waits awake for this long before */
#define PAGE_BYTES 4096
#define MOST 4096
#define PRIORITY 70

/* It is late by less than half a millisecond, when the probe beside it is due again. */
static const int64_t held_ns[] = { 100000, 250000, 440000 };
static const size_t touched_pages[] = { 25, 60, 100 };

struct activation {
	int64_t due, end, begin_of_cause, end_of_cause;
	long culprit;
};

static struct activation all[MOST];
static pthread_mutex_t lock;
static int64_t first_due, released_ns;
static long count, holder;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec until = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void wait_awake(int64_t until_ns)
{
	while (now_ns() < until_ns)
		;
}

static void *hold(void *unused)
{
	(void)unused;
	holder = syscall(SYS_gettid);
	prctl(PR_SET_NAME, "rtproof_holder");
	prctl(PR_SET_TIMERSLACK, 1);
	for (long n = 1; n < count; n += 2) {
		int64_t take = first_due + n * PERIOD_NS - HELD_EARLY_NS;

		sleep_until(take - AWAKE_NS);
		wait_awake(take);
		pthread_mutex_lock(&lock);
		wait_awake(take + held_ns[n / 2 % 3]);
		released_ns = now_ns();
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void touch(struct activation *one, volatile char *pages, size_t number)
{
	one->begin_of_cause = now_ns();
	for (size_t n = 0; n < number; n++)
		pages[n * PAGE_BYTES] = 1;
	one->end = one->end_of_cause = now_ns();
	one->culprit = 0; // its own thread
	madvise((void *)pages, number * PAGE_BYTES, MADV_DONTNEED);
}

static void take_lock(struct activation *one)
{
	one->begin_of_cause = now_ns();
	pthread_mutex_lock(&lock);
	one->end = now_ns();
	one->end_of_cause = released_ns;
	pthread_mutex_unlock(&lock);
	one->culprit = holder;
}

static void *be_late(void *pages)
{
	struct sched_param urgent = { .sched_priority = PRIORITY };

	if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &urgent)) // the function of musl always refuses
		return "no real-time priority";
	for (long n = 0; n < count; n++) {
		all[n].due = first_due + n * PERIOD_NS;
		sleep_until(all[n].due);
		if (n % 2)
			take_lock(&all[n]);
		else
			touch(&all[n], pages, touched_pages[n / 2 % 3]);
	}
	for (long n = 0; n < count; n++)
		printf("activation %ld %lld %lld\n%s %lld %lld %ld\n", syscall(SYS_gettid), (long long)all[n].due, (long long)all[n].end,
		       n % 2 ? "lock-held" : "page-fault", (long long)all[n].begin_of_cause, (long long)all[n].end_of_cause,
		       all[n].culprit);
	return NULL;
}

static int fail(const char *what)
{
	fprintf(stderr, "victim: %s\n", what);
	return 1;
}

static int make_urgent(pid_t thread)
{
	struct sched_param urgent = { .sched_priority = 97 };

	return syscall(SYS_sched_setscheduler, thread, SCHED_FIFO, &urgent) ? fail(strerror(errno)) : 0;
}

int main(int argc, char **argv)
{
	size_t most_pages = touched_pages[2];
	pthread_mutexattr_t inherits;
	pthread_t threads[2];
	void *why;

	if (argc == 3 && !strcmp(argv[1], "urgent"))
		return make_urgent((pid_t)strtol(argv[2], NULL, 10));
	if (argc != 3 || (count = strtol(argv[2], NULL, 10)) < 1 || count > MOST)
		return fail("usage: victim ORIGIN_NS COUNT, or victim urgent TID");
	first_due = strtoll(argv[1], NULL, 10) + 500000;
	if (first_due > now_ns())
		return fail("ORIGIN_NS is not in the past");
	first_due += ((now_ns() - first_due) / PERIOD_NS + 20) * PERIOD_NS;
	pthread_mutexattr_init(&inherits);
	if (pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT) || pthread_mutex_init(&lock, &inherits))
		return fail("no lock that hands priorities on");
	if (mlockall(MCL_CURRENT))
		return fail(strerror(errno));
	char *pages = mmap(NULL, most_pages * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return fail("no memory");
	madvise(pages, most_pages * PAGE_BYTES, MADV_NOHUGEPAGE); // kernels without huge pages refuse
	if (pthread_create(&threads[0], NULL, hold, NULL) || pthread_create(&threads[1], NULL, be_late, pages))
		return fail("no threads");
	pthread_join(threads[1], &why);
	pthread_join(threads[0], NULL);
	return why ? fail(why) : 0;
}
