// SPDX-License-Identifier: Apache-2.0
/*
 * victim ORIGIN_NS COUNT: a periodic thread that makes itself late in known ways, by turns:
 *   page-fault     it touches pages for the first time
 *   lock-held      it takes a lock that a thread of ordinary priority holds. The lock hands its priority on
 *   inversion      the same with a lock that does not, while a thread of middle priority keeps the holder from the CPU
 *   own-sleep      it sleeps
 *   partner-sleep  it waits for the answer of another process, which sleeps, and has its own name only while it answers
 *
 * With several CPUs the late thread is on the first one, and the holder and the hog are on the second one.
 *
 * Due times are ORIGIN_NS plus half a period, plus whole periods, of CLOCK_MONOTONIC. Each activation leaves two lines:
 *   activation TID DUE_NS END_NS
 *   KIND BEGIN_NS END_NS TID      what made it late, and the thread that did it
 *
 * victim own KIND COUNT: see own.c.
 * victim urgent TID: gives a thread the real-time priority 97, which modules may not do in Linux 5.9 to 5.13.
 */
#define _GNU_SOURCE
#include "own.h"

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
#define MIDDLE_PRIORITY 30
#define MIDDLE_LATER_NS 40000 /* the thread of middle priority begins this long after the due time, */
#define STILL_HELD_NS 10000   /* and this long before the holder is done */

/* It is late by less than half a millisecond, when the probe beside it is due again. */
static const int64_t held_ns[] = { 100000, 250000, 440000 };
static const size_t touched_pages[] = { 25, 60, 100 };

struct activation {
	int64_t due, end, begin_of_cause, end_of_cause;
	long culprit;
};

/* What the other process did of late. */
struct partner {
	int64_t asleep_ns, awake_ns;
	long tid;
};

enum doing { PAGE_FAULT, LOCK_HELD, INVERSION, OWN_SLEEP, PARTNER_SLEEP, KINDS };
static const char *const names[] = { "page-fault", "lock-held", "inversion", "own-sleep", "partner-sleep" };

static struct activation all[MOST];
static pthread_mutex_t lock, plain_lock;
static struct partner *partner;
static int64_t first_due, released_ns, kept_from_ns, kept_to_ns;
static long count, holder, hog;
static int questions[2], answers[2];

/* Where there is this CPU. */
static void stay_on(int cpu)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	sched_setaffinity(0, sizeof(only), &only);
}

/* Notes the longest time in which the thread did not run. */
static void wait_awake(int64_t until_ns, int64_t *from_ns, int64_t *to_ns)
{
	for (int64_t before = now_ns(), now; before < until_ns; before = now) {
		now = now_ns();
		if (now - before > *to_ns - *from_ns) {
			*from_ns = before;
			*to_ns = now;
		}
	}
}

/* The n-th activation has one of three lengths. */
static int64_t length_ns(long n)
{
	return held_ns[n / KINDS % 3];
}

/* Once in each turn before the due time. */
static void hold_once(pthread_mutex_t *of, long n, int64_t how_long_ns)
{
	int64_t take = first_due + n * PERIOD_NS - HELD_EARLY_NS;

	int64_t from_ns = 0, to_ns = 0;

	sleep_until(take - AWAKE_NS);
	wait_awake(take, &from_ns, &to_ns);
	pthread_mutex_lock(of);
	from_ns = to_ns = 0;
	wait_awake(take + how_long_ns, &from_ns, &to_ns);
	kept_from_ns = from_ns;
	kept_to_ns = to_ns;
	released_ns = now_ns();
	pthread_mutex_unlock(of);
}

static void *hold(void *unused)
{
	(void)unused;
	holder = syscall(SYS_gettid);
	stay_on(1);
	prctl(PR_SET_NAME, "rtproof_holder");
	prctl(PR_SET_TIMERSLACK, 1);
	for (long n = 0; n < count; n++) {
		if (n % KINDS == LOCK_HELD)
			hold_once(&lock, n, length_ns(n));
		if (n % KINDS == INVERSION)
			hold_once(&plain_lock, n, HELD_EARLY_NS + MIDDLE_LATER_NS + STILL_HELD_NS);
	}
	return NULL;
}

static void *keep_holder(void *unused)
{
	struct sched_param middle = { .sched_priority = MIDDLE_PRIORITY };

	(void)unused;
	hog = syscall(SYS_gettid);
	stay_on(1);
	prctl(PR_SET_NAME, "rtproof_hog");
	if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &middle))
		return "no real-time priority";
	for (long n = INVERSION; n < count; n += KINDS) {
		int64_t due = first_due + n * PERIOD_NS, from_ns = 0, to_ns = 0;

		sleep_until(due + MIDDLE_LATER_NS);
		wait_awake(due + length_ns(n), &from_ns, &to_ns);
	}
	return NULL;
}

/* Another process. A byte tells how long it shall sleep, as an index. */
static int answer(void)
{
	unsigned char which;

	prctl(PR_SET_TIMERSLACK, 1);
	partner->tid = syscall(SYS_gettid);
	while (read(questions[0], &which, 1) == 1) {
		partner->asleep_ns = now_ns();
		partner->awake_ns = partner->asleep_ns + held_ns[which % 3];
		sleep_until(partner->awake_ns);
		prctl(PR_SET_NAME, "rtproof_partner");
		if (write(answers[1], &which, 1) != 1)
			return 1;
		prctl(PR_SET_NAME, "victim");
	}
	return 0;
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

static void wait_for_holder(struct activation *one)
{
	pthread_mutex_lock(&plain_lock);
	one->end = now_ns();
	pthread_mutex_unlock(&plain_lock);
	one->begin_of_cause = kept_from_ns;
	one->end_of_cause = kept_to_ns;
	one->culprit = hog;
}

static void sleep_itself(struct activation *one, int64_t how_long_ns)
{
	one->begin_of_cause = now_ns();
	one->end_of_cause = one->begin_of_cause + how_long_ns;
	sleep_until(one->end_of_cause);
	one->end = now_ns();
	one->culprit = 0;
}

static void ask(struct activation *one, unsigned char which)
{
	if (write(questions[1], &which, 1) != 1 || read(answers[0], &which, 1) != 1)
		exit(1);
	one->end = now_ns();
	one->begin_of_cause = partner->asleep_ns;
	one->end_of_cause = partner->awake_ns;
	one->culprit = partner->tid;
}

static void act(struct activation *one, long n, void *pages)
{
	switch ((enum doing)(n % KINDS)) {
	case PAGE_FAULT:
		touch(one, pages, touched_pages[n / KINDS % 3]);
		break;
	case LOCK_HELD:
		take_lock(one);
		break;
	case INVERSION:
		wait_for_holder(one);
		break;
	case OWN_SLEEP:
		sleep_itself(one, length_ns(n));
		break;
	case PARTNER_SLEEP:
		ask(one, (unsigned char)(n / KINDS % 3));
		break;
	case KINDS:
		break;
	}
}

static void *be_late(void *pages)
{
	struct sched_param urgent = { .sched_priority = PRIORITY };

	stay_on(0);
	if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &urgent)) // the function of musl always refuses
		return "no real-time priority";
	ask(&all[0], 0); // whatever is slow only once is done now
	for (long n = 0; n < count; n++) {
		all[n].due = first_due + n * PERIOD_NS;
		sleep_until(all[n].due);
		act(&all[n], n, pages);
	}
	for (long n = 0; n < count; n++)
		printf("activation %ld %lld %lld\n%s %lld %lld %ld\n", syscall(SYS_gettid), (long long)all[n].due, (long long)all[n].end,
		       names[n % KINDS], (long long)all[n].begin_of_cause, (long long)all[n].end_of_cause, all[n].culprit);
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

/* The process that answers. Before any thread, and before memory is locked. */
static int begin_partner(void)
{
	partner = mmap(NULL, sizeof(*partner), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (partner == MAP_FAILED || pipe(questions) || pipe(answers))
		return fail("no pipes");
	pid_t child = fork();

	if (!child) {
		close(questions[1]);
		_exit(answer());
	}
	return child < 0 ? fail("no process") : 0;
}

static int make_locks(void)
{
	pthread_mutexattr_t inherits;

	pthread_mutexattr_init(&inherits);
	if (pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT) || pthread_mutex_init(&lock, &inherits))
		return fail("no lock that hands priorities on");
	return pthread_mutex_init(&plain_lock, NULL) ? fail("no lock") : 0;
}

int main(int argc, char **argv)
{
	void *(*const all_do[])(void *) = { hold, keep_holder, be_late };
	size_t most_pages = touched_pages[2];
	pthread_t threads[3];

	if (argc == 3 && !strcmp(argv[1], "urgent"))
		return make_urgent((pid_t)strtol(argv[2], NULL, 10));
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "own")) {
		long loops_of_ms = argc == 5 ? strtol(argv[4], NULL, 10) : VIRTUAL_LOOPS_OF_MS;

		return own(argv[2], strtol(argv[3], NULL, 10), loops_of_ms) ? fail("no such doing, or not here") : 0;
	}
	if (argc != 3 || (count = strtol(argv[2], NULL, 10)) < 1 || count > MOST)
		return fail("usage: victim ORIGIN_NS COUNT, victim own KIND COUNT [LOOPS], or victim urgent TID");
	first_due = strtoll(argv[1], NULL, 10) + 500000;
	if (first_due > now_ns())
		return fail("ORIGIN_NS is not in the past");
	first_due += ((now_ns() - first_due) / PERIOD_NS + 20) * PERIOD_NS;
	if (begin_partner() || make_locks())
		return 1;
	if (mlockall(MCL_CURRENT))
		return fail(strerror(errno));
	char *pages = mmap(NULL, most_pages * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return fail("no memory");
	madvise(pages, most_pages * PAGE_BYTES, MADV_NOHUGEPAGE); // kernels without huge pages refuse
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, all_do[i], pages))
			return fail("no threads");
	for (int i = 2; i >= 0; i--) {
		void *why;

		pthread_join(threads[i], &why);
		if (why)
			return fail(why);
	}
	return 0;
}
