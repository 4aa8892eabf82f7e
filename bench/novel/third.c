// SPDX-License-Identifier: Apache-2.0
/*
 * Ten more kinds of "novel", in which the real-time thread is late:
 *   robust        it needs a robust mutex, whose holder computes with it, and dies without giving it back
 *   record-lock   it needs a lock of a file by fcntl(), whose holder is preempted by a thread of lower real-time priority
 *   shootdown     it unmaps a page: the other CPU has interrupts off, and does not answer that its TLB is flushed
 *   io-uring      it waits for a write by io_uring, which a thread of the kernel does
 *   herd          a program of ordinary priority wakes many threads that wait for one eventfd. The thread reads it too
 *   monitor       a program of ordinary priority reads the thread's smaps_rollup, and the thread maps new memory
 *   signal-queue  many queued signals are handled as soon as it lets them in
 *   nice          it gave up its priority for work of its own that is not urgent, and is still an ordinary thread of
 *                 nice 19 at its due time, when a program of ordinary priority computes
 *   memory-high   it needs a little more memory than its group's memory.high
 *   perf-all      a profiler on the other CPU switches off many counters of the thread's CPU
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "novel.h"

static char *mapped(size_t number, int flags)
{
	char *pages = mmap(NULL, number * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	must(pages != MAP_FAILED, "mmap");
	madvise(pages, number * PAGE, MADV_NOHUGEPAGE); // kernels without huge pages refuse
	return pages;
}

static int new_file(void)
{
	int file = (int)syscall(SYS_memfd_create, "novel", 0);

	must(file >= 0, "memfd_create");
	return file;
}

/* Sleeps, and is busy for the last moment, so that it has the CPU then. */
static void be_ready_at(int64_t ns)
{
	sleep_until(ns - 60000);
	spin_until(ns);
}

/* robust */

static pthread_mutex_t *robust;

static void prepare_robust(void)
{
	pthread_mutexattr_t kind;

	robust = (pthread_mutex_t *)mapped(1, MAP_SHARED);
	pthread_mutexattr_init(&kind);
	must(!pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED), "pshared");
	must(!pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST), "robust");
	must(!pthread_mutex_init(robust, &kind), "lock");
}

static void die_with_lock(long n)
{
	prctl(PR_SET_NAME, "novel_owner");
	sleep_until(due_of(n) - 100000);
	must(!pthread_mutex_lock(robust), "lock");
	began(n);
	spin_until(due_of(n) + late_of(n));
	ended(n);
	_exit(0);
}

static void start_owner(long n)
{
	sleep_until(due_of(n) - 2000000);
	pid_t child = fork();

	if (!child)
		die_with_lock(n);
	must(child > 0 && waitpid(child, NULL, 0) == child, "fork");
}

static void need_robust(long n)
{
	sleep_until(due_of(n));
	must(pthread_mutex_lock(robust) == EOWNERDEAD, "EOWNERDEAD");
	all[n].end = now_ns();
	pthread_mutex_consistent(robust);
	pthread_mutex_unlock(robust);
}

/* record-lock */

static int locked_file;

static void prepare_record_lock(void)
{
	locked_file = new_file();
}

static void lock_file(short kind)
{
	struct flock what = { .l_type = kind, .l_whence = SEEK_SET };

	must(!fcntl(locked_file, F_SETLKW, &what), "F_SETLKW");
}

static void hold_file(long n)
{
	sleep_until(due_of(n) - 100000);
	lock_file(F_WRLCK);
	spin_until(due_of(n) - 20000);
	lock_file(F_UNLCK);
}

static void compute_between(long n)
{
	sleep_until(due_of(n) - 60000);
	began(n);
	spin_until(due_of(n) + late_of(n));
	ended(n);
}

static void need_file(long n)
{
	sleep_until(due_of(n));
	lock_file(F_WRLCK);
	all[n].end = now_ns();
	lock_file(F_UNLCK);
}

/* shootdown and perf-all: to take off counters, a CPU has interrupts off */

static int leaders[3];

static void take_counters_off(long n)
{
	be_ready_at(due_of(n) - 15000);
	began(n);
	must(!ioctl(leaders[n % 3], PERF_EVENT_IOC_DISABLE, 0), "PERF_EVENT_IOC_DISABLE");
	ended(n);
	sleep_until(due_of(n) + 2000000);
	must(!ioctl(leaders[(n + 1) % 3], PERF_EVENT_IOC_ENABLE, 0), "PERF_EVENT_IOC_ENABLE");
}

static void profile_own_cpu(long n)
{
	if (!n)
		start_counters(leaders, -1, sched_getcpu());
	take_counters_off(n);
}

static void unmap_page(long n)
{
	char *page = mapped(1, MAP_PRIVATE);

	*page = 1;
	sleep_until(due_of(n));
	must(!munmap(page, PAGE), "munmap");
}

static void profile_all(long n)
{
	if (!n)
		start_counters(leaders, -1, 0);
	take_counters_off(n);
}

/* io-uring */

#define MOST_WRITTEN 100
static int ring, written_file;
static char *written;
static struct io_uring_sqe *question;
static unsigned int *asked_for, *answered;

static void prepare_ring(void)
{
	struct io_uring_params made = { 0 };

	ring = (int)syscall(SYS_io_uring_setup, 1, &made);
	must(ring >= 0, "io_uring_setup");
	char *queues = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	must(queues != MAP_FAILED && made.features & IORING_FEAT_SINGLE_MMAP, "IORING_OFF_SQ_RING");
	question = mmap(NULL, sizeof(*question), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	must(question != MAP_FAILED, "IORING_OFF_SQES");
	asked_for = (unsigned int *)(queues + made.sq_off.tail);
	answered = (unsigned int *)(queues + made.cq_off.head);
	written = mapped(MOST_WRITTEN, MAP_PRIVATE);
	written_file = new_file();
}

static void write_by_ring(long n)
{
	static const unsigned int number_of_pages[] = { 20, 50, 100 };

	*question = (struct io_uring_sqe){ .opcode = IORING_OP_WRITE, .flags = IOSQE_ASYNC, .fd = written_file, .addr = (uintptr_t)written };
	question->len = number_of_pages[n % 3] * PAGE;
	sleep_until(due_of(n));
	all[n].begin_of_cause = now_ns();
	__atomic_fetch_add(asked_for, 1, __ATOMIC_SEQ_CST);
	must(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1, "io_uring_enter");
	ended(n);
	all[n].end = all[n].end_of_cause;
	__atomic_fetch_add(answered, 1, __ATOMIC_SEQ_CST);
	must(!ftruncate(written_file, 0), "ftruncate");
}

/* herd */

#define MOST_OF_HERD 180
static const long number_of_herd[] = { 50, 110, MOST_OF_HERD };
static int event;

static void take_one(void)
{
	uint64_t one;

	must(read(event, &one, sizeof(one)) == sizeof(one), "read of the eventfd");
}

static void prepare_event(void)
{
	event = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
	must(event >= 0, "eventfd");
}

static void *wait_in_herd(void *which)
{
	struct pollfd what = { .fd = event, .events = POLLIN };

	for (long n = 2; n < count; n++) {
		if ((long)which >= number_of_herd[n % 3])
			continue;
		sleep_until(due_of(n) - 4000000);
		must(poll(&what, 1, -1) == 1, "poll");
		take_one();
	}
	return NULL;
}

static void start_herd(long n)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 4 * PAGE);
	for (long i = 0; !n && i < MOST_OF_HERD; i++)
		must(!pthread_create(&thread, &small, wait_in_herd, (void *)i), "pthread_create");
	sleep_until(due_of(n) + 2000000);
}

static void wake_herd(long n)
{
	uint64_t number = 1 + (n < 2 ? 0 : (uint64_t)number_of_herd[n % 3]);

	be_ready_at(due_of(n) - 15000);
	began(n);
	must(write(event, &number, sizeof(number)) == sizeof(number), "write to the eventfd");
	ended(n);
}

static void read_event(long n)
{
	sleep_until(due_of(n));
	take_one();
}

/* monitor */

#define WATCHED 3000
static char watched_path[64];

static void prepare_watched(void)
{
	snprintf(watched_path, sizeof(watched_path), "/proc/%d/smaps_rollup", (int)getpid());
	memset(mapped(WATCHED, MAP_PRIVATE), 1, (size_t)WATCHED * PAGE);
}

static void watch(long n)
{
	static const int64_t before[] = { 100000, 200000, 300000 };
	char text[2048];
	int file = open(watched_path, O_RDONLY);

	must(file >= 0, watched_path);
	be_ready_at(due_of(n) - before[n % 3]);
	began(n);
	must(read(file, text, sizeof(text)) > 0, "smaps_rollup");
	ended(n);
	close(file);
}

static void map_new(long n)
{
	sleep_until(due_of(n));
	char *page = mapped(1, MAP_PRIVATE);

	all[n].end = now_ns();
	munmap(page, PAGE);
}

/* signal-queue */

static volatile long handled;

static void handle(int number)
{
	(void)number;
	spin_until(now_ns() + 2500);
	handled++;
}

static void let_signals_in(int how)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGRTMIN);
	must(!sigprocmask(how, &one, NULL), "sigprocmask");
}

static void prepare_signals(void)
{
	must(signal(SIGRTMIN, handle) != SIG_ERR, "signal");
	let_signals_in(SIG_BLOCK);
}

static void queue_signals(long n)
{
	static const int number_of_signals[] = { 15, 35, 60 };
	union sigval nothing = { 0 };

	sleep_until(due_of(n) - 3000000);
	for (int i = 0; i < number_of_signals[n % 3]; i++)
		must(!sigqueue(getppid(), SIGRTMIN, nothing), "sigqueue");
}

static void handle_queued(long n)
{
	sleep_until(due_of(n));
	all[n].begin_of_cause = now_ns();
	let_signals_in(SIG_UNBLOCK);
	ended(n);
	all[n].end = all[n].end_of_cause;
	let_signals_in(SIG_BLOCK);
}

/* nice */

static void prepare_nice(void)
{
	must(!setpriority(PRIO_PROCESS, 0, 19) && !prctl(PR_SET_TIMERSLACK, 1), "nice");
}

static void crunch(long n)
{
	if (!n)
		must(!setpriority(PRIO_PROCESS, 0, 0), "nice");
	sleep_until(due_of(n) - 100000);
	began(n);
	spin_until(due_of(n) + late_of(n));
	ended(n);
}

static void wait_as_ordinary(long n)
{
	struct sched_param ordinary = { 0 };

	must(!syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &ordinary), "SCHED_OTHER");
	spin_until(now_ns() + 500000);
	sleep_until(due_of(n));
	all[n].end = now_ns();
	be_fifo(PRIORITY);
}

/* memory-high: who is above it must sleep before it returns from the kernel. After one such sleep the thread has enough. */

#define HIGH 8192
#define BELOW 200
static char *taken;

static void prepare_memory(void)
{
	char high[32];

	make_group();
	write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	snprintf(high, sizeof(high), "%d", HIGH * PAGE);
	write_text(GROUP "/memory.high", high);
	write_text(GROUP "/cgroup.procs", "0");
	memset(mapped(HIGH - BELOW, MAP_PRIVATE), 1, (size_t)(HIGH - BELOW) * PAGE);
	taken = mapped(2 * BELOW, MAP_PRIVATE);
}

static void take_memory(long n)
{
	munlock(taken, 2 * BELOW * PAGE);
	madvise(taken, 2 * BELOW * PAGE, MADV_DONTNEED);
	sleep_until(due_of(n));
	for (int page = 0; page < 2 * BELOW && all[n].end_of_cause < all[n].begin_of_cause + 1000000; page++) {
		all[n].begin_of_cause = now_ns();
		taken[page * PAGE] = 1;
		ended(n);
	}
}

const struct kind third_kinds[] = {
	{ "robust", prepare_robust, need_robust, { { "novel_starter", start_owner, 0, 1, 0 } }, 8 },
	{ "record-lock",
	  prepare_record_lock,
	  need_file,
	  { { "novel_holder", hold_file, 0, 1, 0 }, { "novel_busy", compute_between, 30, 1, 0 } },
	  8 },
	{ "shootdown", prepare_nothing, unmap_page, { { "novel_profiler", profile_own_cpu, 0, 0, 1 } }, 8 },
	{ "io-uring", prepare_ring, write_by_ring, { { 0 } }, 8 },
	{ "herd", prepare_event, read_event, { { "novel_herd", start_herd, 0, 1, 0 }, { "novel_waker", wake_herd, 0, 1, 0 } }, 16 },
	{ "monitor", prepare_watched, map_new, { { "novel_monitor", watch, 0, 1, 0 } }, 8 },
	{ "signal-queue", prepare_signals, handle_queued, { { "novel_asker", queue_signals, 0, 1, 0 } }, 8 },
	{ "nice", prepare_nice, wait_as_ordinary, { { "novel_cruncher", crunch, 0, 1, 0 } }, 8 },
	{ "memory-high", prepare_memory, take_memory, { { 0 } }, 100 },
	{ "perf-all", prepare_nothing, only_wait, { { "novel_profiler", profile_all, 0, 1, 1 } }, 8 },
	{ 0 },
};
