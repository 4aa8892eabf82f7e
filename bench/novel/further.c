// SPDX-License-Identifier: Apache-2.0
/*
 * Ten further kinds of "novel", in which the real-time thread is late:
 *   sleepers         many threads of a much lower real-time priority have a timer that expires shortly before its own
 *   perf-counters    it preempts a program that perf counts with many counters, which the switch takes off the CPU
 *   close-file       it closes the last descriptor of a large file in memory, which frees the file's pages
 *   membarrier       it calls membarrier(), which waits for a grace period of RCU
 *   pty-worker       it reads what it wrote to a pseudo-terminal: a kernel worker passes the bytes on. A thread of lower
 *                    real-time priority keeps that worker from the CPU
 *   pi-chain         it needs a lock with priority inheritance, whose holder needs another one, whose holder is preempted
 *                    on the other CPU by a thread that is more urgent than all of them
 *   vfork            it starts a program: until the child has called exec(), the kernel keeps it waiting
 *   frozen           it needs the answer of a process in a group that another process froze by cgroup.freeze
 *   deadline-budget  it has a SCHED_DEADLINE budget, and needs a little more than the budget
 *   moved            a more urgent process of the other CPU moves it to that CPU, and goes on computing there
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "novel.h"

/* Computes on the CPU of the real-time thread until the kernel takes it away at the n-th due time. What takes the CPU
   began when this program last had it, and ends with the first instruction of the real-time thread. */
static void begin_when_interrupted(long n)
{
	int64_t before = now_ns(), now;

	while ((now = now_ns()) < due_of(n))
		before = now;
	all[n].begin_of_cause = before;
}

static void wait_for_interrupted(long n)
{
	sleep_until(due_of(n));
	ended(n);
}

/* Computes for so long, without the time that something else takes from it. */
static void compute_for(int64_t ns)
{
	int64_t spent = 0, before = now_ns();

	while (spent < ns) {
		int64_t now = now_ns();

		spent += now - before < 5000 ? now - before : 0;
		before = now;
	}
}

/* sleepers */

#define MOST_SLEEPERS 160

static void *sleep_often(void *which)
{
	static const long number_of_sleepers[] = { 40, 90, MOST_SLEEPERS };

	be_fifo(1);
	for (long n = 1; n < count; n++)
		if ((long)which < number_of_sleepers[n % 3])
			sleep_until(due_of(n) - 15000);
	return NULL;
}

static void start_sleepers(long n)
{
	pthread_t thread;

	for (long i = 0; !n && i < MOST_SLEEPERS; i++)
		must(!pthread_create(&thread, NULL, sleep_often, (void *)i), "pthread_create");
	sleep_until(due_of(n) + 2000000);
}

static void witness(long n)
{
	sleep_until(due_of(n) - 200000);
	begin_when_interrupted(n);
}

/* perf-counters: three groups of counters, and one of them counts */

static int counted[3];

static int new_counter(int group, int thread, int cpu)
{
	struct perf_event_attr what = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(what), .config = PERF_COUNT_SW_PAGE_FAULTS };

	what.disabled = group < 0;
	int counter = (int)syscall(SYS_perf_event_open, &what, thread, cpu, group, 0);

	must(counter >= 0, "perf_event_open");
	return counter;
}

void start_counters(int leaders[3], int thread, int cpu)
{
	static const int number_of_counters[] = { 300, 600, 900 };
	struct rlimit files = { 8192, 8192 };

	must(!setrlimit(RLIMIT_NOFILE, &files), "RLIMIT_NOFILE");
	for (int which = 0; which < 3; which++) {
		leaders[which] = new_counter(-1, thread, cpu);
		for (int i = 1; i < number_of_counters[which]; i++)
			new_counter(leaders[which], thread, cpu);
	}
}

static void be_counted(long n)
{
	if (!n)
		start_counters(counted, 0, -1);
	must(!ioctl(counted[(n + 2) % 3], PERF_EVENT_IOC_DISABLE, 0), "PERF_EVENT_IOC_DISABLE");
	must(!ioctl(counted[n % 3], PERF_EVENT_IOC_ENABLE, 0), "PERF_EVENT_IOC_ENABLE");
	sleep_until(due_of(n) - 1500000);
	all[n].culprit = syscall(SYS_gettid);
	begin_when_interrupted(n);
}

/* close-file */

static void close_file(long n)
{
	static const int number_of_pages[] = { 50, 120, 220 };
	static char page[PAGE];
	int file = (int)syscall(SYS_memfd_create, "novel", 0);

	must(file >= 0, "memfd_create");
	for (int i = 0; i < number_of_pages[n % 3]; i++)
		must(write(file, page, PAGE) == PAGE, "write");
	sleep_until(due_of(n));
	all[n].begin_of_cause = now_ns();
	close(file);
	ended(n);
}

/* membarrier */

static void wait_for_others(long n)
{
	sleep_until(due_of(n));
	all[n].begin_of_cause = now_ns();
	must(!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0), "membarrier");
	ended(n);
}

/* pty-worker */

static int outer_end, inner_end;

static void prepare_terminal(void)
{
	struct termios raw;
	int unlocked = 0;

	mkdir("/dev/pts", 0755);
	must(!mount("none", "/dev/pts", "devpts", 0, "ptmxmode=0666") || errno == EBUSY, "devpts");
	outer_end = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY);
	must(outer_end >= 0 && !ioctl(outer_end, TIOCSPTLCK, &unlocked), "/dev/pts/ptmx");
	inner_end = ioctl(outer_end, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	must(inner_end >= 0 && !tcgetattr(inner_end, &raw), "TIOCGPTPEER");
	cfmakeraw(&raw);
	must(!tcsetattr(inner_end, TCSANOW, &raw), "tcsetattr");
}

static void compute_below(long n)
{
	sleep_until(due_of(n) - 60000);
	began(n);
	spin_until(due_of(n) + late_of(n));
	ended(n);
}

static void use_terminal(long n)
{
	char byte = 'x';

	sleep_until(due_of(n));
	must(write(outer_end, &byte, 1) == 1 && read(inner_end, &byte, 1) == 1, "terminal");
}

/* pi-chain */

static struct {
	pthread_mutex_t first, second;
} *chain;

static void prepare_chain(void)
{
	pthread_mutexattr_t kind;

	chain = mmap(NULL, sizeof(*chain), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(chain != MAP_FAILED, "mmap");
	pthread_mutexattr_init(&kind);
	must(!pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED), "pshared");
	must(!pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT), "protocol");
	must(!pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST), "robust");
	must(!pthread_mutex_init(&chain->first, &kind) && !pthread_mutex_init(&chain->second, &kind), "locks");
}

static void hold_first(long n)
{
	sleep_until(due_of(n) - 140000);
	pthread_mutex_lock(&chain->first);
	pthread_mutex_lock(&chain->second);
	pthread_mutex_unlock(&chain->second);
	pthread_mutex_unlock(&chain->first);
}

static void hold_second(long n)
{
	sleep_until(due_of(n) - 240000);
	pthread_mutex_lock(&chain->second);
	spin_until(due_of(n) - 40000);
	pthread_mutex_unlock(&chain->second);
}

static void compute_above(long n)
{
	sleep_until(due_of(n) - 80000);
	began(n);
	spin_until(due_of(n) + late_of(n));
	ended(n);
}

static void need_first(long n)
{
	sleep_until(due_of(n));
	pthread_mutex_lock(&chain->first);
	all[n].end = now_ns();
	pthread_mutex_unlock(&chain->first);
}

/* vfork: the child closes all descriptors that might be open, as a careful program does before it starts another one.
   It has the ordinary priority. */

static void close_and_start(long n)
{
	char *arguments[] = { "novel", NULL }, *environment[] = { NULL };

	prctl(PR_SET_NAME, "novel_child");
	began(n);
	for (int file = 2; now_ns() < all[n].begin_of_cause + late_of(n); file++)
		close(file);
	execve("/proc/self/exe", arguments, environment);
	_exit(1);
}

static void start_program(long n)
{
	struct sched_param urgent = { .sched_priority = PRIORITY };

	must(!syscall(SYS_sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK, &urgent), "SCHED_RESET_ON_FORK");
	sleep_until(due_of(n));
	pid_t child = vfork();

	if (!child)
		close_and_start(n);
	ended(n);
	all[n].end = all[n].end_of_cause;
	must(child > 0 && waitpid(child, NULL, 0) == child, "vfork");
}

/* frozen */

static int to_worker[2], from_worker[2];

static void prepare_frozen(void)
{
	must(!pipe(to_worker) && !pipe(from_worker), "pipes");
	make_group();
}

static void answer_soon(long n)
{
	char byte;

	if (!n)
		write_text(GROUP "/cgroup.procs", "0");
	must(read(to_worker[0], &byte, 1) == 1 && write(from_worker[1], &byte, 1) == 1, "answer");
}

static void freeze(long n)
{
	sleep_until(due_of(n) - 500000);
	write_text(GROUP "/cgroup.freeze", "1");
	began(n);
	sleep_until(due_of(n) + late_of(n));
	ended(n);
	write_text(GROUP "/cgroup.freeze", "0");
}

static void ask_worker(long n)
{
	char byte = 0;

	sleep_until(due_of(n));
	must(write(to_worker[1], &byte, 1) == 1 && read(from_worker[0], &byte, 1) == 1, "answer");
}

/* deadline-budget: the kernel's default looks at a budget only at each tick, so the exact way is switched on */

#define BUDGET 150000

struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static void prepare_budget(void)
{
	write_text("/sys/kernel/debug/sched/features", "HRTICK_DL");
}

static void exceed_budget(long n)
{
	static const uint64_t periods[] = { 450000, 600000, 750000 };
	struct attributes attributes = { sizeof(attributes), SCHED_DEADLINE, 0, 0, 0, BUDGET, periods[n % 3], periods[n % 3] };

	must(!syscall(SYS_sched_setattr, 0, &attributes, 0), "sched_setattr");
	sleep_until(due_of(n));
	for (int64_t begun = now_ns(), spent = 0, longest = 0, before = begun, now; spent < BUDGET + 30000; before = now) {
		now = now_ns();
		if (now - before < 5000)
			spent += now - before;
		if (now - before <= longest)
			continue;
		longest = now - before;
		all[n].begin_of_cause = before;
		all[n].end_of_cause = now;
	}
}

/* moved */

static void move_here(long n)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(1, &here);
	sleep_until(due_of(n) - 30000);
	spin_until(due_of(n) + 40000);
	must(!sched_setaffinity(getppid(), sizeof(here), &here), "sched_setaffinity");
	began(n);
	spin_until(due_of(n) + 40000 + late_of(n));
	ended(n);
}

static void be_moved(long n)
{
	sleep_until(due_of(n));
	compute_for(80000);
	all[n].end = now_ns();
	must(!stay_on(0), "sched_setaffinity");
}

const struct kind further_kinds[] = {
	{ "sleepers", prepare_nothing, wait_for_interrupted, { { "novel_sleeper", start_sleepers, 0, 1, 0 }, { "novel_witness", witness, 0, 1, 0 } }, 8 },
	{ "perf-counters", prepare_nothing, wait_for_interrupted, { { "novel_counted", be_counted, 0, 1, 0 } }, 8 },
	{ "close-file", prepare_nothing, close_file, { { 0 } }, 20 },
	{ "membarrier", prepare_nothing, wait_for_others, { { 0 } }, 100 },
	{ "pty-worker", prepare_terminal, use_terminal, { { "novel_filter", compute_below, 30, 1, 0 } }, 8 },
	{ "pi-chain",
	  prepare_chain,
	  need_first,
	  { { "novel_first", hold_first, 0, 1, 0 }, { "novel_second", hold_second, 0, 1, 1 }, { "novel_urgent", compute_above, 80, 1, 1 } },
	  8 },
	{ "vfork", prepare_nothing, start_program, { { 0 } }, 20 },
	{ "frozen", prepare_frozen, ask_worker, { { "novel_worker", answer_soon, 0, 1, 1 }, { "novel_freezer", freeze, 0, 1, 1 } }, 8 },
	{ "deadline-budget", prepare_budget, exceed_budget, { { 0 } }, 8 },
	{ "moved", prepare_nothing, be_moved, { { "novel_manager", move_here, 80, 1, 1 } }, 8 },
	{ 0 },
};
