/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application as others write it: foreign_app KIND N PERIOD_US. A real-time thread waits N times with a timerfd, a POSIX timer or
 * clock_nanosleep, or is woken through a pipe by another thread. It prints, for each time, how late it was by its own clock, and when
 * it read that clock (CLOCK_MONOTONIC), in ns. Its name is "app-KIND".
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000, PRIORITY = 70 };

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

struct wake {
	int64_t late_ns, read_ns;
};

static struct wake woken(int64_t due_ns)
{
	int64_t read_ns = now_ns();

	return (struct wake){ .late_ns = read_ns - due_ns, .read_ns = read_ns };
}

static struct timespec as_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

static struct itimerspec every(int64_t first_ns, int64_t period_ns)
{
	return (struct itimerspec){ .it_value = as_timespec(first_ns), .it_interval = as_timespec(period_ns) };
}

static void by_timerfd(struct wake *wakes, int n, int64_t first_ns, int64_t period_ns)
{
	struct itimerspec when = every(first_ns, period_ns);
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	int64_t due_ns = first_ns - period_ns;
	uint64_t times;

	timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
	for (int i = 0; i < n && read(fd, &times, sizeof(times)) == sizeof(times); i++) {
		due_ns += period_ns * (int64_t)times;
		wakes[i] = woken(due_ns);
	}
}

static void by_posix_timer(struct wake *wakes, int n, int64_t first_ns, int64_t period_ns)
{
	struct itimerspec when = every(first_ns, period_ns);
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	int64_t due_ns = first_ns - period_ns;
	siginfo_t info;
	sigset_t set;
	timer_t timer;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, TIMER_ABSTIME, &when, NULL);
	for (int i = 0; i < n && sigwaitinfo(&set, &info) == SIGUSR1; i++) {
		due_ns += period_ns * (1 + info.si_overrun);
		wakes[i] = woken(due_ns);
	}
}

static void by_sleep(struct wake *wakes, int n, int64_t first_ns, int64_t period_ns)
{
	for (int i = 0; i < n; i++) {
		struct timespec due = as_timespec(first_ns + i * period_ns);

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		wakes[i] = woken(first_ns + i * period_ns);
	}
}

struct sender {
	int fd, n;
	int64_t first_ns, period_ns;
};

static void *send_all(void *argument)
{
	const struct sender *sender = argument;
	struct sched_param param = { .sched_priority = 0 };

	prctl(PR_SET_NAME, "app-sender");
	sched_setscheduler(0, SCHED_OTHER, &param);
	for (int i = 0; i < sender->n; i++) {
		struct timespec due = as_timespec(sender->first_ns + i * sender->period_ns);

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		int64_t sent_ns = now_ns();

		if (write(sender->fd, &sent_ns, sizeof(sent_ns)) != sizeof(sent_ns))
			break;
	}
	return NULL;
}

static void by_pipe(struct wake *wakes, int n, int64_t first_ns, int64_t period_ns)
{
	int64_t sent_ns;
	pthread_t thread;
	int ends[2];

	if (pipe(ends))
		return;
	struct sender sender = { .fd = ends[1], .n = n, .first_ns = first_ns, .period_ns = period_ns };

	pthread_create(&thread, NULL, send_all, &sender);
	for (int i = 0; i < n && read(ends[0], &sent_ns, sizeof(sent_ns)) == sizeof(sent_ns); i++)
		wakes[i] = woken(sent_ns);
	pthread_join(thread, NULL);
}

static const struct {
	const char *name;
	void (*run)(struct wake *wakes, int n, int64_t first_ns, int64_t period_ns);
} kinds[] = { { "timerfd", by_timerfd }, { "posix", by_posix_timer }, { "sleep", by_sleep }, { "pipe", by_pipe } };

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = PRIORITY };
	char name[16];
	sigset_t set;

	if (argc != 4)
		return 2;
	int n = atoi(argv[2]);
	int64_t period_ns = atoll(argv[3]) * 1000;
	struct wake *wakes = calloc((size_t)n, sizeof(*wakes));

	snprintf(name, sizeof(name), "app-%s", argv[1]);
	prctl(PR_SET_NAME, name);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (!wakes || sched_setscheduler(0, SCHED_FIFO, &param)) {
		perror("sched_setscheduler");
		return 1;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, argv[1]))
			kinds[i].run(wakes, n, now_ns() + 50000000, period_ns);
	for (int i = 0; i < n; i++)
		printf("%lld %lld\n", (long long)wakes[i].late_ns, (long long)wakes[i].read_ns);
	return 0;
}
