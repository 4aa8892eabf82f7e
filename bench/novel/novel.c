// SPDX-License-Identifier: Apache-2.0
/*
 * novel KIND ORIGIN_NS COUNT: a periodic real-time thread is made late in one way, which programs beside it time:
 *   fifo-peer      a thread of the same SCHED_FIFO priority computes and does not yield
 *   stopped        another process sends SIGSTOP, and later SIGCONT
 *   poll-rounding  it waits for its due time in poll(), whose timeout is rounded up to the next millisecond
 *   fork-cow       it forked, so its next write to each page copies the page
 *   logger-pipe    it needs a lock that a logger holds, while the logger writes to a full pipe, whose reader sleeps
 *   printk         a program of ordinary priority writes a long message to /dev/kmsg, which the serial console prints
 *   udp-broadcast  a program of ordinary priority sends a packet that many sockets get. The thread sends one too
 *   mmap-lock      a thread of ordinary priority changes the protection of many pages, and it touches a new page
 *   requeue        its condition is signalled by a thread that holds the lock, and keeps the lock for long
 *   cpu-max        it needs the answer of a process of ordinary priority that has used up its group's cpu.max
 * or in one of the ways of further.c or third.c.
 *
 * Due times are ORIGIN_NS plus half a millisecond, plus whole periods, of CLOCK_MONOTONIC. Each activation leaves:
 *   activation TID DUE_NS END_NS
 *   KIND BEGIN_NS END_NS TID      when the disturbance began and ended, and the thread that made it; 0 for its own
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "novel.h"

#define MOST 256
#define FIRST 2 /* activations that are not told: whatever is slow only once is done in them */
#define PORT 5600

struct activation *all;
static int64_t first_due, period_ns;
long count;

static int64_t time_ns(clockid_t clock)
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

void spin_until(int64_t ns)
{
	while (now_ns() < ns)
		;
}

void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "novel: %s: %s\n", what, strerror(errno));
	_exit(1);
}

void be_fifo(int priority)
{
	struct sched_param urgent = { .sched_priority = priority };

	must(!syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &urgent), "sched_setscheduler"); // musl's always refuses
}

int64_t due_of(long n)
{
	return first_due + n * period_ns;
}

int64_t late_of(long n)
{
	static const int64_t lengths_ns[] = { 100000, 250000, 440000 };

	return lengths_ns[n % 3];
}

void began(long n)
{
	all[n].culprit = syscall(SYS_gettid);
	all[n].begin_of_cause = now_ns();
}

void ended(long n)
{
	all[n].end_of_cause = now_ns();
}

static long futex(uint32_t *word, int what, uint32_t value, long second, uint32_t *other, uint32_t third)
{
	return syscall(SYS_futex, word, what, value, second, other, third);
}

void prepare_nothing(void)
{
}

static char *new_pages(size_t number)
{
	char *pages = mmap(NULL, number * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(pages != MAP_FAILED, "mmap");
	madvise(pages, number * PAGE, MADV_NOHUGEPAGE); // kernels without huge pages refuse
	return pages;
}

void only_wait(long n)
{
	sleep_until(due_of(n));
}

/* fifo-peer */

static void compute_as_peer(long n)
{
	sleep_until(due_of(n) - 30000);
	began(n);
	spin_until(due_of(n) + late_of(n));
	ended(n);
}

/* stopped */

static void stop(long n)
{
	sleep_until(due_of(n) - 100000);
	began(n);
	kill(getppid(), SIGSTOP);
	sleep_until(due_of(n) + late_of(n));
	ended(n);
	kill(getppid(), SIGCONT);
}

/* poll-rounding */

static void wait_in_poll(long n)
{
	sleep_until(due_of(n) + late_of(n) - 3000000);
	int64_t left_ns = due_of(n) - now_ns();

	poll(NULL, 0, (int)((left_ns + 999999) / 1000000));
	all[n].begin_of_cause = due_of(n);
	ended(n);
}

/* fork-cow */

static char *copied;

static void prepare_pages(void)
{
	copied = new_pages(100);
	memset(copied, 1, 100 * PAGE);
}

static void write_after_fork(long n)
{
	static const int number_of_pages[] = { 25, 60, 100 };

	sleep_until(due_of(n) - 3000000);
	pid_t child = fork();

	if (!child) {
		sleep_until(due_of(n) + 2000000);
		_exit(0);
	}
	sleep_until(due_of(n));
	all[n].begin_of_cause = now_ns();
	for (int page = 0; page < number_of_pages[n % 3]; page++)
		copied[page * PAGE]++;
	ended(n);
	all[n].end = now_ns();
	waitpid(child, NULL, 0);
}

/* logger-pipe */

static pthread_mutex_t lock;
static int full_pipe[2];
static char block[PAGE];

static void prepare_log(void)
{
	pthread_mutexattr_t inherits;

	pthread_mutexattr_init(&inherits);
	must(!pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT) && !pthread_mutex_init(&lock, &inherits), "lock");
	must(!pipe(full_pipe) && fcntl(full_pipe[1], F_SETPIPE_SZ, PAGE) == PAGE, "pipe");
	must(write(full_pipe[1], block, PAGE) == PAGE, "write");
}

static void log_with_lock(long n)
{
	sleep_until(due_of(n) - 100000);
	pthread_mutex_lock(&lock);
	must(write(full_pipe[1], block, PAGE) == PAGE, "write");
	pthread_mutex_unlock(&lock);
}

static void read_log(long n)
{
	began(n);
	sleep_until(due_of(n) + late_of(n));
	ended(n);
	must(read(full_pipe[0], block, PAGE) == PAGE, "read");
}

static void need_lock(long n)
{
	sleep_until(due_of(n));
	pthread_mutex_lock(&lock);
	all[n].end = now_ns();
	pthread_mutex_unlock(&lock);
}

/* printk */

static int messages;

static void prepare_kmsg(void)
{
	messages = open("/dev/kmsg", O_WRONLY);
	must(messages >= 0, "/dev/kmsg");
}

static void print_long(long n)
{
	char line[900];

	memset(line, 'x', sizeof(line));
	memcpy(line, "<0>", 3);
	line[sizeof(line) - 1] = '\n';
	sleep_until(due_of(n) - 60000);
	spin_until(due_of(n) - 6000); // a line takes 20 us
	began(n);
	must(write(messages, line, sizeof(line)) == sizeof(line), "write to /dev/kmsg");
	ended(n);
}

/* udp-broadcast */

static int sender, own_socket;

static struct sockaddr_in address(const char *host, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = { inet_addr(host) } };

	return to;
}

static int bound_socket(int port)
{
	int one = socket(AF_INET, SOCK_DGRAM, 0), yes = 1;
	struct sockaddr_in here = address("0.0.0.0", port);

	must(one >= 0 && !setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), "socket");
	must(!bind(one, (struct sockaddr *)&here, sizeof(here)), "bind");
	return one;
}

static void prepare_sockets(void)
{
	static const int number_of_sockets[] = { 60, 120, 200 };
	struct ifreq loopback = { .ifr_name = "lo" };
	int yes = 1;

	sender = bound_socket(PORT + 8);
	own_socket = bound_socket(PORT + 9);
	must(!ioctl(sender, SIOCGIFFLAGS, &loopback), "lo");
	loopback.ifr_flags |= IFF_UP;
	must(!ioctl(sender, SIOCSIFFLAGS, &loopback), "lo up");
	must(!setsockopt(sender, SOL_SOCKET, SO_BROADCAST, &yes, sizeof(yes)), "SO_BROADCAST");
	for (int which = 0; which < 3; which++)
		for (int n = 0; n < number_of_sockets[which]; n++)
			bound_socket(PORT + which);
}

static void broadcast(long n)
{
	struct sockaddr_in to = address("127.255.255.255", PORT + (int)(n % 3));

	sleep_until(due_of(n) - 60000);
	spin_until(due_of(n) - 15000);
	began(n);
	must(sendto(sender, block, 64, 0, (struct sockaddr *)&to, sizeof(to)) == 64, "sendto");
	ended(n);
}

static void send_one(long n)
{
	struct sockaddr_in to = address("127.0.0.1", PORT + 9);

	sleep_until(due_of(n));
	must(sendto(own_socket, block, 64, 0, (struct sockaddr *)&to, sizeof(to)) == 64, "sendto");
	all[n].end = now_ns();
	must(recv(own_socket, block, 64, MSG_DONTWAIT) == 64, "recv");
}

/* mmap-lock */

#define PROTECTED 14000
static char *protected, *untouched;

static void prepare_maps(void)
{
	protected = new_pages(PROTECTED);
	memset(protected, 1, (size_t)PROTECTED * PAGE);
	untouched = new_pages(MOST);
}

static void change_protection(long n)
{
	static const size_t number_of_pages[] = { 4000, 8000, PROTECTED };

	sleep_until(due_of(n) - 60000);
	spin_until(due_of(n) - 15000);
	began(n);
	must(!mprotect(protected, number_of_pages[n % 3] * PAGE, PROT_READ), "mprotect");
	ended(n);
	mprotect(protected, number_of_pages[n % 3] * PAGE, PROT_READ | PROT_WRITE);
}

static void touch_new(long n)
{
	sleep_until(due_of(n));
	untouched[n * PAGE] = 1;
}

/* requeue: condition and lock as a C library makes them of futexes, if a signal moves waiters to the lock */

static uint32_t condition, plain_lock; /* plain_lock: 0 free, 2 taken, with waiters */

static void signal_with_lock(long n)
{
	sleep_until(due_of(n) - 40000);
	__atomic_store_n(&plain_lock, 2, __ATOMIC_SEQ_CST);
	spin_until(due_of(n));
	began(n);
	__atomic_fetch_add(&condition, 1, __ATOMIC_SEQ_CST);
	futex(&condition, FUTEX_REQUEUE_PRIVATE, 0, INT_MAX, &plain_lock, 0);
	spin_until(due_of(n) + late_of(n));
	ended(n);
	__atomic_store_n(&plain_lock, 0, __ATOMIC_SEQ_CST);
	futex(&plain_lock, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0);
}

static void wait_for_condition(long n)
{
	while (__atomic_load_n(&condition, __ATOMIC_SEQ_CST) == (uint32_t)n)
		futex(&condition, FUTEX_WAIT_PRIVATE, (uint32_t)n, 0, NULL, 0);
}

/* cpu-max: 2 of 20 ms, and an answer costs 5 */

static int questions[2], answers[2];

void write_text(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	must(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(file);
}

void make_group(void)
{
	mkdir("/sys/fs/cgroup", 0755);
	must(!mount("none", "/sys/fs/cgroup", "cgroup2", 0, NULL) || errno == EBUSY, "cgroup2");
	must(!mkdir(GROUP, 0755) || errno == EEXIST, GROUP);
}

static void prepare_group(void)
{
	must(!pipe(questions) && !pipe(answers), "pipes");
	make_group();
	write_text("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
	write_text(GROUP "/cpu.max", "2000 20000");
}

static void answer(long n)
{
	char byte;

	if (!n)
		write_text(GROUP "/cgroup.procs", "0");
	must(read(questions[0], &byte, 1) == 1, "read");
	all[n].culprit = syscall(SYS_gettid);
	int64_t done = time_ns(CLOCK_THREAD_CPUTIME_ID) + 5000000, longest = 0;

	for (int64_t before = now_ns(), now; time_ns(CLOCK_THREAD_CPUTIME_ID) < done; before = now) {
		now = now_ns();
		if (now - before <= longest)
			continue;
		longest = now - before;
		all[n].begin_of_cause = before;
		all[n].end_of_cause = now;
	}
	must(write(answers[1], &byte, 1) == 1, "write");
}

static void ask(long n)
{
	char byte = 0;

	sleep_until(due_of(n));
	must(write(questions[1], &byte, 1) == 1 && read(answers[0], &byte, 1) == 1, "answer");
}

static const struct kind kinds[] = {
	{ "fifo-peer", prepare_nothing, only_wait, { { "novel_peer", compute_as_peer, PRIORITY, 1, 0 } }, 8 },
	{ "stopped", prepare_nothing, only_wait, { { "novel_stopper", stop, 0, 1, 1 } }, 8 },
	{ "poll-rounding", prepare_nothing, wait_in_poll, { { 0 } }, 8 },
	{ "fork-cow", prepare_pages, write_after_fork, { { 0 } }, 8 },
	{ "logger-pipe", prepare_log, need_lock, { { "novel_logger", log_with_lock, 0, 0, 1 }, { "novel_reader", read_log, 0, 1, 1 } }, 8 },
	{ "printk", prepare_kmsg, only_wait, { { "novel_printer", print_long, 0, 1, 0 } }, 8 },
	{ "udp-broadcast", prepare_sockets, send_one, { { "novel_sender", broadcast, 0, 1, 0 } }, 8 },
	{ "mmap-lock", prepare_maps, touch_new, { { "novel_mapper", change_protection, 0, 0, 1 } }, 20 },
	{ "requeue", prepare_nothing, wait_for_condition, { { "novel_signaller", signal_with_lock, 0, 0, 1 } }, 8 },
	{ "cpu-max", prepare_group, ask, { { "novel_worker", answer, 0, 1, 1 } }, 100 },
	{ 0 },
};

int stay_on(int cpu)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	return sched_setaffinity(0, sizeof(only), &only);
}

static void *help(void *which)
{
	const struct helper *helper = which;

	prctl(PR_SET_NAME, helper->name);
	prctl(PR_SET_TIMERSLACK, 1);
	if (helper->elsewhere)
		stay_on(1);
	if (helper->priority)
		be_fifo(helper->priority);
	for (long n = 0; n < count; n++)
		helper->disturb(n);
	return NULL;
}

static void start(const struct helper *helper)
{
	pthread_t thread;

	if (!helper->is_process) {
		must(!pthread_create(&thread, NULL, help, (void *)helper), "pthread_create");
		return;
	}
	pid_t child = fork();

	must(child >= 0, "fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		help((void *)helper);
		_exit(0);
	}
}

static void run(const struct kind *kind)
{
	must(!stay_on(0), "sched_setaffinity");
	period_ns = kind->period_ms * 1000000LL;
	first_due += 500000;
	first_due += ((now_ns() - first_due) / 1000000 + 500) * 1000000; // 500 ms to prepare
	kind->prepare();
	for (int i = 0; i < HELPERS && kind->helpers[i].name; i++) // processes come last, so that they have no threads
		start(&kind->helpers[i]);
	must(!mlockall(MCL_CURRENT), "mlockall");
	if (kind->act == touch_new)
		munlock(untouched, MOST * PAGE), madvise(untouched, MOST * PAGE, MADV_DONTNEED);
	be_fifo(PRIORITY);
	must(now_ns() < due_of(0) - 4000000, "not ready in time");
	for (long n = 0; n < count; n++) {
		all[n].due = due_of(n);
		kind->act(n);
		if (!all[n].end)
			all[n].end = now_ns();
	}
}

static void print(const struct kind *kind)
{
	for (long n = FIRST; n < count; n++)
		printf("activation %d %lld %lld\n%s %lld %lld %ld\n", (int)syscall(SYS_gettid), (long long)all[n].due, (long long)all[n].end,
		       kind->name, (long long)all[n].begin_of_cause, (long long)all[n].end_of_cause, all[n].culprit);
}

static const struct kind *find(const struct kind *kind, const char *name)
{
	while (kind->name && strcmp(kind->name, name))
		kind++;
	return kind->name ? kind : NULL;
}

int main(int argc, char **argv)
{
	if (argc != 4 || (count = strtol(argv[3], NULL, 10) + FIRST) <= FIRST || count > MOST) {
		fprintf(stderr, "usage: novel KIND ORIGIN_NS COUNT\n");
		return 1;
	}
	first_due = strtoll(argv[2], NULL, 10);
	all = mmap(NULL, MOST * sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(all != MAP_FAILED, "mmap");
	alarm(60);
	const struct kind *const sets[] = { kinds, further_kinds, third_kinds }, *kind = NULL;

	for (int which = 0; !kind && which < 3; which++)
		kind = find(sets[which], argv[1]);
	if (!kind) {
		fprintf(stderr, "novel: no such kind\n");
		return 1;
	}
	run(kind);
	usleep(5000); // the last helper is done
	print(kind);
	return 0;
}
