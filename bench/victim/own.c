// SPDX-License-Identifier: Apache-2.0
/*
 * victim own KIND COUNT: a thread makes itself late, each time in the same known way, and leaves a line for each time:
 *   KIND TID BEGIN_NS END_NS RAN_NS FROM_NS TO_NS TOOK_NS
 * RAN_NS is how long the thread had a CPU. From FROM_NS to TO_NS the cause was at work: the whole time, or what it noted
 * itself. TOOK_NS is how much of that it took for certain. Times are of CLOCK_MONOTONIC. A timer's BEGIN_NS is when it
 * was due.
 *
 * victim own KIND COUNT LOOPS: the same on a machine where a millisecond has so many turns of the loop; 0 measures that.
 *
 * victim own answer MS LOOPS: computes, and ends. The kind exec runs it.
 */
#define _GNU_SOURCE
#include "own.h"

#include <errno.h>
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
#define SLACK_NS 3000000

struct deadline {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

long loops;
static char *buffer;
static int zeroes;
int64_t begin_ns;
struct shared *shared;

int64_t time_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t now_ns(void)
{
	return time_ns(CLOCK_MONOTONIC);
}

void sleep_until(int64_t ns)
{
	struct timespec until = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* Without a system call, which reading the clock may be. */
void compute_ms(int ms)
{
	for (volatile long n = 0; n < (long)ms * loops; n++)
		;
}

/* With what else slows the CPU now. */
static void measure_loops(void)
{
	int64_t before = time_ns(CLOCK_THREAD_CPUTIME_ID);

	loops = 1000000;
	compute_ms(20);
	loops = (long)(20000000LL * loops / (time_ns(CLOCK_THREAD_CPUTIME_ID) - before));
}

/* How long the thread was ready and had no CPU, since it began; 0 where the kernel does not count that. */
int64_t delayed_ns(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	long long ran = 0, waited = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%lld %lld", &ran, &waited) != 2)
		waited = 0;
	fclose(file);
	return waited;
}

/* How long the group whose cpu.stat is in the environment was throttled. cgroup v1 counts ns, v2 us. */
static int64_t throttled_ns(void)
{
	const char *path = getenv("CPU_STAT");
	FILE *file = path ? fopen(path, "r") : NULL;
	char key[64];
	long long value, found = 0;

	if (!file)
		return 0;
	while (fscanf(file, "%63s %lld", key, &value) == 2)
		if (!strcmp(key, "throttled_time"))
			found = value;
		else if (!strcmp(key, "throttled_usec"))
			found = value * 1000;
	fclose(file);
	return found;
}

static void handle(int number)
{
	(void)number;
	shared->from_ns = now_ns();
	compute_ms(2);
	shared->to_ns = now_ns();
}

char *new_pages(size_t number)
{
	char *pages = mmap(NULL, number * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages != MAP_FAILED)
		madvise(pages, number * PAGE_BYTES, MADV_NOHUGEPAGE);
	return pages;
}

static volatile char *pages;

/* The function of musl always refuses. */
void be_fifo(int priority)
{
	struct sched_param urgent = { .sched_priority = priority };

	if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &urgent))
		abort();
}

static void touch_one(void)
{
	pages[0] = 1;
	shared->from_ns = now_ns();
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

static void compute_2(void)
{
	compute_ms(2);
}

static void compute_long(void)
{
	compute_ms(30);
}

static void compute_limited(void)
{
	int64_t before = throttled_ns();

	compute_long();
	before = throttled_ns() - before;
	shared->took_ns = before ? before : 1; // 0 would be the CPU time
}

/* Nothing is more urgent than the deadline, so the budget took all of the time without a CPU. */
static void compute_short(void)
{
	int64_t before = time_ns(CLOCK_THREAD_CPUTIME_ID);

	compute_ms(9);
	shared->took_ns = now_ns() - begin_ns - (time_ns(CLOCK_THREAD_CPUTIME_ID) - before);
}

static void compute_for_ever(void)
{
	compute_ms(1300);
}

static void sleep_with_slack(void)
{
	int64_t before = delayed_ns();

	begin_ns = now_ns() + 5000000;
	sleep_until(begin_ns);
	shared->from_ns = begin_ns;
	shared->to_ns = now_ns();
	int64_t late = shared->to_ns - begin_ns - (delayed_ns() - before);

	shared->took_ns = late < SLACK_NS ? late : SLACK_NS;
}

static void *be_urgent(void *unused)
{
	(void)unused;
	be_fifo(98);
	prctl(PR_SET_NAME, "became_urgent");
	begin_ns = now_ns();
	compute_ms(2);
	shared->took_ns = time_ns(CLOCK_THREAD_CPUTIME_ID);
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


static void prepare_slack(void)
{
	prctl(PR_SET_TIMERSLACK, SLACK_NS);
}

void prepare_nothing(void)
{
}

static const struct kind kinds[] = {
	{ "one-page", prepare_nothing, touch_one },	{ "pages", prepare_nothing, touch_many },
	{ "call", prepare_nothing, call },		{ "signal", prepare_signal, be_signalled },
	{ "compute", prepare_nothing, compute_2 },	{ "cpu-max", prepare_nothing, compute_limited },
	{ "deadline", prepare_deadline, compute_short },
	{ "rt-runtime", prepare_nothing, compute_for_ever, .fifo = 10 },
	{ "slack", prepare_slack, sleep_with_slack },	{ "became-urgent", prepare_nothing, become_urgent },
};

static void ask_partner(const struct kind *kind)
{
	if (!kind->asks)
		return;
	sem_post(&shared->asked);
	if (kind->early_ns)
		sleep_until(now_ns() + kind->early_ns);
}

static int repeat(const struct kind *kind, long count)
{
	static struct { int64_t begin, end, ran, from, to, took; } all[MOST];

	kind->prepare();
	if (kind->fifo)
		be_fifo(kind->fifo);
	for (long n = 0; n < count; n++) {
		pages = new_pages(PAGES);
		if (kind->again)
			kind->again();
		sleep_until(now_ns() + 7000000 + n % 7 * 130000);
		ask_partner(kind);
		shared->from_ns = shared->to_ns = shared->took_ns = 0;
		int64_t ran = time_ns(CLOCK_THREAD_CPUTIME_ID);

		begin_ns = now_ns();
		kind->be_late();
		all[n].end = now_ns();
		all[n].ran = time_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
		all[n].begin = begin_ns;
		all[n].from = shared->from_ns ? shared->from_ns : begin_ns;
		all[n].to = shared->to_ns ? shared->to_ns : all[n].end;
		all[n].took = shared->took_ns ? shared->took_ns : all[n].ran;
		munmap((void *)pages, PAGES * PAGE_BYTES);
	}
	for (long n = 0; n < count; n++)
		printf("%s %ld %lld %lld %lld %lld %lld %lld\n", kind->name, syscall(SYS_gettid), (long long)all[n].begin,
		       (long long)all[n].end, (long long)all[n].ran, (long long)all[n].from, (long long)all[n].to,
		       (long long)all[n].took);
	fflush(stdout);
	_exit(0); // partners do not end by themselves
}

static const struct kind *find_kind(const char *name)
{
	for (size_t n = 0; n < sizeof(kinds) / sizeof(*kinds); n++)
		if (!strcmp(kinds[n].name, name))
			return &kinds[n];
	for (size_t n = 0; n < wait_kinds_count; n++)
		if (!strcmp(wait_kinds[n].name, name))
			return &wait_kinds[n];
	return NULL;
}

int own(const char *name, long count, long loops_of_ms)
{
	loops = loops_of_ms;
	if (!loops)
		measure_loops();
	if (!strcmp(name, "answer")) {
		compute_ms((int)count);
		return 0;
	}
	const struct kind *kind = find_kind(name);

	zeroes = open("/dev/zero", O_RDONLY);
	buffer = malloc(BUFFER_BYTES);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!kind || count < 1 || count > MOST || zeroes < 0 || !buffer || shared == MAP_FAILED)
		return 1;
	memset(buffer, 1, BUFFER_BYTES);
	if (sem_init(&shared->asked, 1, 0) || sem_init(&shared->answered, 1, 0) || mlockall(MCL_CURRENT))
		return 1;
	return repeat(kind, count);
}
