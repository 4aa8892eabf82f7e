// SPDX-License-Identifier: Apache-2.0
/* The kinds of own.c in which the thread waits for another one, loses the CPU to it, or is long in the kernel. */
#define _GNU_SOURCE
#include "own.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BELOW 30 /* the partner's priority: it runs while the thread waits */
#define ABOVE 60
#define EARLY_NS 1000000
#define MUCH (4 << 20)
#define MANY 400 /* pages */
#define HOG_AFTER_NS 300000

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, lock_a, lock_b, robust;
static pthread_barrier_t barrier;
static sem_t middle_asked, hog_asked;
static volatile int done;
static int pair[2];
static char *much, *full;
static long victim_tid;
static clockid_t hog_clock;

static void must(int worked)
{
	if (!worked)
		abort();
}

/* Notes when, for the truth. */
static void work_ms(int ms)
{
	int64_t before = time_ns(CLOCK_THREAD_CPUTIME_ID);

	shared->from_ns = now_ns();
	compute_ms(ms);
	shared->to_ns = now_ns();
	shared->took_ns = time_ns(CLOCK_THREAD_CPUTIME_ID) - before;
}

static void rest_ms(int ms)
{
	shared->from_ns = now_ns();
	shared->to_ns = shared->from_ns + ms * 1000000;
	shared->took_ns = ms * 1000000;
	sleep_until(shared->to_ns);
}

static void (*helps)(void);

static void *partner_thread(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "partner");
	be_fifo(BELOW);
	for (;;) {
		while (sem_wait(&shared->asked))
			;
		helps();
	}
	return NULL;
}

static void begin_thread(void *(*does)(void *))
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, does, NULL));
}

static void begin_partner(void (*help)(void))
{
	helps = help;
	begin_thread(partner_thread);
}

static void begin_process(void (*help)(void))
{
	victim_tid = syscall(SYS_gettid);
	pid_t child = fork();

	must(child >= 0);
	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	helps = help;
	partner_thread(NULL);
}

/* Locks. */

static void hold_plain(void)
{
	pthread_mutex_lock(&plain);
	work_ms(3);
	pthread_mutex_unlock(&plain);
}

static void prepare_mutex(void)
{
	begin_partner(hold_plain);
}

static void take_plain(void)
{
	pthread_mutex_lock(&plain);
	pthread_mutex_unlock(&plain);
}

static void *be_middle(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "middle");
	be_fifo(BELOW + 1);
	for (;;) {
		while (sem_wait(&middle_asked))
			;
		pthread_mutex_lock(&lock_a);
		pthread_mutex_lock(&lock_b);
		pthread_mutex_unlock(&lock_b);
		pthread_mutex_unlock(&lock_a);
	}
	return NULL;
}

/* The thread in the middle has lock a, and waits for lock b. */
static void hold_b(void)
{
	pthread_mutex_lock(&lock_b);
	sem_post(&middle_asked);
	work_ms(3);
	pthread_mutex_unlock(&lock_b);
}

static void prepare_chain(void)
{
	pthread_mutexattr_t inherits;

	pthread_mutexattr_init(&inherits);
	must(!pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT));
	must(!pthread_mutex_init(&lock_a, &inherits) && !pthread_mutex_init(&lock_b, &inherits));
	must(!sem_init(&middle_asked, 0, 0));
	begin_thread(be_middle);
	begin_partner(hold_b);
}

static void take_a(void)
{
	pthread_mutex_lock(&lock_a);
	pthread_mutex_unlock(&lock_a);
}

static void come_late(void)
{
	rest_ms(2);
	pthread_barrier_wait(&barrier);
}

static void prepare_barrier(void)
{
	must(!pthread_barrier_init(&barrier, NULL, 2));
	begin_partner(come_late);
}

static void come(void)
{
	pthread_barrier_wait(&barrier);
}

static void *die_with_lock(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "dying");
	be_fifo(BELOW);
	pthread_mutex_lock(&robust);
	work_ms(3);
	return NULL;
}

static void begin_dying(void)
{
	pthread_t dying;

	must(!pthread_create(&dying, NULL, die_with_lock, NULL));
	pthread_join(dying, NULL);
}

static void prepare_robust(void)
{
	pthread_mutexattr_t outlives;

	pthread_mutexattr_init(&outlives);
	must(!pthread_mutexattr_setrobust(&outlives, PTHREAD_MUTEX_ROBUST));
	must(!pthread_mutex_init(&robust, &outlives));
	begin_partner(begin_dying);
}

static void take_robust(void)
{
	if (pthread_mutex_lock(&robust))
		pthread_mutex_consistent(&robust);
	pthread_mutex_unlock(&robust);
}

/* Messages. */

static void work_and_write(void)
{
	work_ms(2);
	must(write(pair[1], "x", 1) == 1);
}

static void prepare_pipe(void)
{
	must(!pipe(pair));
	begin_process(work_and_write);
}

static void read_answer(void)
{
	char answer;

	must(read(pair[0], &answer, 1) == 1);
}

static void prepare_udp(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(here);
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	pair[0] = socket(AF_INET, SOCK_DGRAM, 0);
	pair[1] = socket(AF_INET, SOCK_DGRAM, 0);
	must(!ioctl(pair[0], SIOCSIFFLAGS, &lo) && !bind(pair[0], (struct sockaddr *)&here, sizeof(here)));
	must(!getsockname(pair[0], (struct sockaddr *)&here, &bytes) && !connect(pair[1], (struct sockaddr *)&here, bytes));
	begin_process(work_and_write);
}

/* Processes. */

/* The child runs only while it is waited for, so all of its CPU time made the thread late. */
static void wait_for(pid_t child)
{
	struct rusage used;

	must(wait4(child, NULL, 0, &used) == child);
	shared->from_ns = begin_ns;
	shared->to_ns = begin_ns + (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000LL +
			(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000LL;
	shared->took_ns = shared->to_ns - shared->from_ns;
}

static void wait_for_child(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_NAME, "child");
		be_fifo(BELOW);
		compute_ms(3);
		_exit(0);
	}
	wait_for(child);
}

static void prepare_exec(void)
{
	unlink("answerer");
	must(!symlink("victim", "answerer"));
}

static void wait_for_program(void)
{
	char turns[32];

	snprintf(turns, sizeof(turns), "%ld", loops);
	pid_t child = vfork();

	if (!child) {
		be_fifo(BELOW);
		execl("answerer", "answerer", "own", "answer", "3", turns, (char *)NULL);
		_exit(1);
	}
	wait_for(child);
}

static volatile int *is_late;

/* Once; it goes on for ever. The thread stops for each of its signals, which its tracer takes away. */
static void trace_victim(void)
{
	pid_t tid = (pid_t)victim_tid;

	must(!ptrace(PTRACE_SEIZE, tid, NULL, NULL) && !ptrace(PTRACE_INTERRUPT, tid, NULL, NULL));
	is_late[1] = 1;
	for (int status; waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status);) {
		if (is_late[0]) {
			is_late[0] = 0;
			work_ms(2);
		}
		ptrace(PTRACE_CONT, tid, NULL, NULL);
	}
	_exit(0);
}

static void prepare_ptrace(void)
{
	is_late = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(is_late != MAP_FAILED);
	begin_process(trace_victim);
	sem_post(&shared->asked);
	while (!is_late[1])
		sleep_until(now_ns() + 1000000);
}

static void call_while_traced(void)
{
	is_late[0] = 1;
	syscall(SYS_tkill, victim_tid, SIGURG);
}

/* Who takes the CPU. */

static void *be_hog(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "hog");
	be_fifo(ABOVE);
	for (;;) {
		while (sem_wait(&hog_asked))
			;
		sleep_until(begin_ns + HOG_AFTER_NS);
		work_ms(2);
	}
	return NULL;
}

static void prepare_fifo_hog(void)
{
	pthread_t hog = 0;

	must(!sem_init(&hog_asked, 0, 0) && !pthread_create(&hog, NULL, be_hog, NULL));
	must(!pthread_getcpuclockid(hog, &hog_clock));
}

/* The hog runs only while the thread is late. */
static void be_late_by(clockid_t hog, void (*do_it)(void))
{
	int64_t before = time_ns(hog);

	do_it();
	shared->took_ns = time_ns(hog) - before;
}

static void ask_hog_and_compute(void)
{
	sem_post(&hog_asked);
	compute_ms(1);
}

static void compute_beside_hog(void)
{
	be_late_by(hog_clock, ask_hog_and_compute);
}

static clockid_t crowd_clock;

static void *be_crowd(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "crowd");
	for (;;) {
		while (sem_wait(&hog_asked))
			;
		while (!done)
			shared->to_ns = now_ns();
	}
	return NULL;
}

static void *hold_nicely(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "partner");
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
	for (;;) {
		while (sem_wait(&shared->asked))
			;
		done = 0;
		pthread_mutex_lock(&plain);
		sem_post(&hog_asked);
		compute_ms(1);
		done = 1;
		pthread_mutex_unlock(&plain);
	}
	return NULL;
}

/* The holder is ordinary and nice, and so loses most of the CPU to another ordinary thread. */
static void prepare_fair(void)
{
	pthread_t crowd;

	must(!sem_init(&hog_asked, 0, 0));
	must(!pthread_create(&crowd, NULL, be_crowd, NULL));
	must(!pthread_getcpuclockid(crowd, &crowd_clock));
	begin_thread(hold_nicely);
}

static void take_plain_beside_crowd(void)
{
	be_late_by(crowd_clock, take_plain);
}

/* Long in the kernel. */

static void prepare_much(void)
{
	much = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(much != MAP_FAILED);
	madvise(much, MUCH, MADV_NOHUGEPAGE);
	memset(much, 1, MUCH);
}

static void fork_much(void)
{
	if (!syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))
		_exit(0);
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Pages. */

static void *sleep_on(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

static void touch_shared(void)
{
	for (size_t n = 0; n < PAGES; n++)
		full[n * PAGE_BYTES] = 2;
}

static void share_pages(void)
{
	if (!full)
		full = new_pages(PAGES);
	memset(full, 1, PAGES * PAGE_BYTES);
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep_on(NULL);
	}
	static pid_t before;

	if (before > 0) {
		kill(before, SIGKILL);
		waitpid(before, NULL, 0);
	}
	before = child;
}

static void use_new_memory(void)
{
	volatile char *memory = new_pages(MANY);

	shared->from_ns = now_ns();
	for (size_t n = 0; n < MANY; n++)
		memory[n * PAGE_BYTES] = 1;
	shared->to_ns = now_ns();
	munmap((void *)memory, MANY * PAGE_BYTES);
}

const struct kind wait_kinds[] = {
	{ "mutex", prepare_mutex, take_plain, .asks = 1, .early_ns = EARLY_NS, .fifo = LATE },
	{ "pi-chain", prepare_chain, take_a, .asks = 1, .early_ns = EARLY_NS, .fifo = LATE },
	{ "barrier", prepare_barrier, come, .asks = 1, .fifo = LATE },
	{ "robust", prepare_robust, take_robust, .asks = 1, .early_ns = EARLY_NS, .fifo = LATE },
	{ "pipe", prepare_pipe, read_answer, .asks = 1, .fifo = LATE },
	{ "udp", prepare_udp, read_answer, .asks = 1, .fifo = LATE },
	{ "child", prepare_nothing, wait_for_child, .fifo = LATE },
	{ "exec", prepare_exec, wait_for_program, .fifo = LATE },
	{ "ptrace", prepare_ptrace, call_while_traced, .fifo = LATE },
	{ "fifo-hog", prepare_fifo_hog, compute_beside_hog, .fifo = LATE },
	{ "fair", prepare_fair, take_plain_beside_crowd, .asks = 1, .early_ns = EARLY_NS, .fifo = LATE },
	{ "fork", prepare_much, fork_much, .again = reap, .fifo = LATE },
	{ "cow", prepare_nothing, touch_shared, .again = share_pages, .fifo = LATE },
	{ "new-memory", prepare_nothing, use_new_memory, .fifo = LATE },
};
const size_t wait_kinds_count = sizeof(wait_kinds) / sizeof(*wait_kinds);
