// SPDX-License-Identifier: Apache-2.0
/* The kinds of own.c in which the thread waits for another one, loses the CPU to it, or is long in the kernel. */
#define _GNU_SOURCE
#include "own.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t middle_asked, hog_asked;
static volatile int done;
static int pair[2], one_file, same_file, faults;
static char *much, *missing, *full;
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
static int partner_priority = BELOW;

static void *partner_thread(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "partner");
	be_fifo(partner_priority);
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

static void produce(void)
{
	work_ms(2);
	pthread_mutex_lock(&plain);
	done = 1;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&plain);
}

static void prepare_condition(void)
{
	begin_partner(produce);
}

static void consume(void)
{
	pthread_mutex_lock(&plain);
	while (!done)
		pthread_cond_wait(&changed, &plain);
	done = 0;
	pthread_mutex_unlock(&plain);
}

static void work_and_post(void)
{
	work_ms(2);
	sem_post(&shared->answered);
}

static void prepare_semaphore(void)
{
	begin_partner(work_and_post);
}

static void wait_for_answer(void)
{
	while (sem_wait(&shared->answered))
		;
}

static void hold_to_read(void)
{
	pthread_rwlock_rdlock(&readers);
	work_ms(3);
	pthread_rwlock_unlock(&readers);
}

static void prepare_rwlock(void)
{
	begin_partner(hold_to_read);
}

static void take_to_write(void)
{
	pthread_rwlock_wrlock(&readers);
	pthread_rwlock_unlock(&readers);
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

static void hold_file(void)
{
	flock(one_file, LOCK_EX);
	work_ms(3);
	flock(one_file, LOCK_UN);
}

static void prepare_file_lock(void)
{
	one_file = open("locked", O_RDWR | O_CREAT, 0600);
	same_file = open("locked", O_RDWR);
	must(one_file >= 0 && same_file >= 0);
	begin_partner(hold_file);
}

static void take_file(void)
{
	flock(same_file, LOCK_EX);
	flock(same_file, LOCK_UN);
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

static void prepare_socket(void)
{
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	begin_process(work_and_write);
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

static void work_and_drain(void)
{
	work_ms(2);
	must(read(pair[0], full, 65536) == 65536);
	shared->to_ns = now_ns();
}

static void prepare_full_pipe(void)
{
	must(!pipe(pair));
	full = calloc(1, 65536);
	must(full != NULL && write(pair[1], full, 65536) == 65536);
	begin_process(work_and_drain);
}

static void write_more(void)
{
	must(write(pair[1], full, 65536) == 65536);
}

static void work_and_signal(void)
{
	work_ms(2);
	syscall(SYS_kill, (pid_t)victim_tid, SIGUSR2);
}

static void prepare_signal_wait(void)
{
	sigset_t only;

	sigemptyset(&only);
	sigaddset(&only, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &only, NULL);
	begin_process(work_and_signal);
}

static void wait_for_signal(void)
{
	sigset_t only;

	sigemptyset(&only);
	sigaddset(&only, SIGUSR2);
	while (sigtimedwait(&only, NULL, NULL) != SIGUSR2)
		;
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

/* By a partner that is more urgent than the thread. */
static void stop_victim(void)
{
	sleep_until(now_ns() + 500000);
	syscall(SYS_kill, (pid_t)victim_tid, SIGSTOP);
	rest_ms(2);
	syscall(SYS_kill, (pid_t)victim_tid, SIGCONT);
}

static void prepare_stopped(void)
{
	partner_priority = ABOVE;
	begin_process(stop_victim);
}

static void compute_1(void)
{
	compute_ms(1);
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

static void *be_hog(void *policy)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} budget = { sizeof(budget), 6, 0, 0, 0, 4000000, 5000000, 5000000 };

	prctl(PR_SET_NAME, "hog");
	if (policy)
		must(!syscall(SYS_sched_setattr, 0, &budget, 0));
	else
		be_fifo(ABOVE);
	for (;;) {
		while (sem_wait(&hog_asked))
			;
		sleep_until(begin_ns + HOG_AFTER_NS);
		work_ms(2);
	}
	return NULL;
}

static void begin_hog(void *policy)
{
	pthread_t hog = 0;

	must(!sem_init(&hog_asked, 0, 0) && !pthread_create(&hog, NULL, be_hog, policy));
	must(!pthread_getcpuclockid(hog, &hog_clock));
}

static void prepare_fifo_hog(void)
{
	begin_hog(NULL);
}

static void prepare_deadline_hog(void)
{
	begin_hog(&hog_asked);
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

static void work(void)
{
	work_ms(2);
}

static void prepare_yield(void)
{
	begin_partner(work);
}

static void yield(void)
{
	sched_yield();
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

/* Own timers. */

static void wait_in_vain(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 2000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&plain);
	pthread_cond_timedwait(&changed, &plain, &until);
	pthread_mutex_unlock(&plain);
	shared->took_ns = 2000000;
}

static void poll_nothing(void)
{
	poll(NULL, 0, 2);
	shared->took_ns = 2000000;
}

/* Long in the kernel. */

static void prepare_much(void)
{
	much = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(much != MAP_FAILED);
	madvise(much, MUCH, MADV_NOHUGEPAGE);
	memset(much, 1, MUCH);
}

static void unmap_much(void)
{
	munmap(much, MUCH);
}

static void protect_much(void)
{
	mprotect(much, MUCH, PROT_READ);
}

static void allow_again(void)
{
	mprotect(much, MUCH, PROT_READ | PROT_WRITE);
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

static void prepare_file(void)
{
	prepare_much();
	one_file = open("written", O_RDWR | O_CREAT, 0600);
	must(one_file >= 0);
}

static void write_much(void)
{
	must(pwrite(one_file, much, MUCH, 0) == MUCH);
}

static void empty_file(void)
{
	must(!ftruncate(one_file, 0));
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

static void fill_page(void)
{
	static char content[PAGE_BYTES];
	struct uffdio_copy copy = { (uintptr_t)missing, (uintptr_t)content, PAGE_BYTES, 0, 0 };
	struct uffd_msg message;

	must(read(faults, &message, sizeof(message)) == sizeof(message));
	work_ms(2);
	must(!ioctl(faults, UFFDIO_COPY, &copy));
}

static void prepare_userfault(void)
{
	struct uffdio_api api = { .api = UFFD_API };

	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	missing = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(faults >= 0 && missing != MAP_FAILED && !ioctl(faults, UFFDIO_API, &api));
	struct uffdio_register range = { { (uintptr_t)missing, PAGE_BYTES }, UFFDIO_REGISTER_MODE_MISSING, 0 };

	must(!ioctl(faults, UFFDIO_REGISTER, &range));
	full = calloc(1, PAGE_BYTES);
	begin_partner(fill_page);
}

static void touch_missing(void)
{
	*(volatile char *)missing = 1;
}

/* Before the next time. */
static void lose_page(void)
{
	madvise(missing, PAGE_BYTES, MADV_DONTNEED);
}

const struct kind wait_kinds[] = {
	{ "mutex", prepare_mutex, take_plain, .asks = 1, .early_ns = EARLY_NS, .fifo = LATE },
	{ "pi-chain", prepare_chain, take_a, .asks = 1, .early_ns = EARLY_NS, .fifo = LATE },
	{ "condition", prepare_condition, consume, .asks = 1, .fifo = LATE },
	{ "semaphore", prepare_semaphore, wait_for_answer, .asks = 1, .fifo = LATE },
	{ "rwlock", prepare_rwlock, take_to_write, .asks = 1, .early_ns = EARLY_NS, .fifo = LATE },
	{ "barrier", prepare_barrier, come, .asks = 1, .fifo = LATE },
	{ "robust", prepare_robust, take_robust, .asks = 1, .early_ns = EARLY_NS, .fifo = LATE },
	{ "file-lock", prepare_file_lock, take_file, .asks = 1, .early_ns = EARLY_NS, .fifo = LATE },
	{ "pipe", prepare_pipe, read_answer, .asks = 1, .fifo = LATE },
	{ "socket", prepare_socket, read_answer, .asks = 1, .fifo = LATE },
	{ "udp", prepare_udp, read_answer, .asks = 1, .fifo = LATE },
	{ "full-pipe", prepare_full_pipe, write_more, .asks = 1, .fifo = LATE },
	{ "signal-wait", prepare_signal_wait, wait_for_signal, .asks = 1, .fifo = LATE },
	{ "child", prepare_nothing, wait_for_child, .fifo = LATE },
	{ "exec", prepare_exec, wait_for_program, .fifo = LATE },
	{ "stopped", prepare_stopped, compute_1, .asks = 1, .fifo = LATE },
	{ "ptrace", prepare_ptrace, call_while_traced, .fifo = LATE },
	{ "fifo-hog", prepare_fifo_hog, compute_beside_hog, .fifo = LATE },
	{ "deadline-hog", prepare_deadline_hog, compute_beside_hog, .fifo = LATE },
	{ "yield", prepare_yield, yield, .asks = 1, .fifo = BELOW },
	{ "fair", prepare_fair, take_plain_beside_crowd, .asks = 1, .early_ns = EARLY_NS, .fifo = LATE },
	{ "cond-timeout", prepare_nothing, wait_in_vain, .fifo = LATE },
	{ "poll", prepare_nothing, poll_nothing, .fifo = LATE },
	{ "munmap", prepare_nothing, unmap_much, .again = prepare_much, .fifo = LATE },
	{ "mprotect", prepare_much, protect_much, .again = allow_again, .fifo = LATE },
	{ "fork", prepare_much, fork_much, .again = reap, .fifo = LATE },
	{ "write", prepare_file, write_much, .again = empty_file, .fifo = LATE },
	{ "cow", prepare_nothing, touch_shared, .again = share_pages, .fifo = LATE },
	{ "new-memory", prepare_nothing, use_new_memory, .fifo = LATE },
	{ "userfault", prepare_userfault, touch_missing, .again = lose_page, .asks = 1, .fifo = LATE },
};
const size_t wait_kinds_count = sizeof(wait_kinds) / sizeof(*wait_kinds);
