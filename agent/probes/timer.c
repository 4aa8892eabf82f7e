/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer probe: a thread asks to be woken at a time and reads the clock when it runs. The difference is the timer
 * latency. Six ways to ask: the four of Bootlin's article on the AT91SAM, the relative sleep and timerfd.
 */
#include "system/sys.h"

#include "system/clock.h"
#include "probes/probe.h"
#include "measure/worker.h"

#include <stdlib.h>
#include <sys/time.h>

struct timer;

/* How one method waits. expired: due times that the kernel says have passed in this wait, where it says so. */
struct waiter {
	struct method method;
	int (*arm)(struct timer *timer);
	int (*wait)(struct timer *timer, uint64_t *expired);
	uint32_t (*missed)(const struct timer *timer, int64_t now_ns, uint64_t expired);
	void (*disarm)(struct timer *timer);
};

struct timer {
	const struct waiter *waiter;
	int64_t due_ns, period_ns;
	int id;
	sigset_t signals;
};

/* Due times behind the one just served that have passed already. */
static uint32_t missed_by_clock(const struct timer *timer, int64_t now_ns, uint64_t expired)
{
	(void)expired;
	int64_t late_ns = now_ns - timer->due_ns;

	return late_ns < timer->period_ns ? 0 : (uint32_t)(late_ns / timer->period_ns);
}

static uint32_t missed_by_kernel(const struct timer *timer, int64_t now_ns, uint64_t expired)
{
	(void)timer;
	(void)now_ns;
	return expired ? (uint32_t)(expired - 1) : 0;
}

static int arm_nothing(struct timer *timer)
{
	(void)timer;
	return 0;
}

static void disarm_nothing(struct timer *timer)
{
	(void)timer;
}

static int wait_absolute(struct timer *timer, uint64_t *expired)
{
	(void)expired;
	return sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, timer->due_ns);
}

/* Relative methods begin one period before the first due time, and then at each wake-up. */
static int arm_relative(struct timer *timer)
{
	int err;

	do
		err = sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, timer->due_ns - timer->period_ns);
	while (err == -EINTR);
	timer->due_ns = clock_now_ns() + timer->period_ns;
	return err;
}

static int wait_relative(struct timer *timer, uint64_t *expired)
{
	(void)expired;
	return sys_sleep(CLOCK_MONOTONIC, 0, timer->period_ns);
}

/* The system call itself: libc's nanosleep() may be clock_nanosleep(CLOCK_REALTIME) today. */
static int wait_nanosleep(struct timer *timer, uint64_t *expired)
{
	struct timespec t = { .tv_sec = (time_t)(timer->period_ns / NS_PER_SECOND),
			      .tv_nsec = (long)(timer->period_ns % NS_PER_SECOND) };

	(void)expired;
#ifdef SYS_nanosleep
	if (sizeof(t.tv_sec) == sizeof(long))
		return sys_result(syscall(SYS_nanosleep, &t, (void *)0));
	struct sys_time32 t32 = { (int32_t)t.tv_sec, (int32_t)t.tv_nsec };

	return sys_result(syscall(SYS_nanosleep, &t32, (void *)0));
#else
	return nanosleep(&t, NULL) < 0 ? -errno : 0;
#endif
}

/* Signals are taken with sigwaitinfo(), so they are blocked; the one that asks the thread to stop is taken as well. */
static void block_signals(struct timer *timer, int signal)
{
	sigemptyset(&timer->signals);
	sigaddset(&timer->signals, signal);
	sigaddset(&timer->signals, WORKER_STOP_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &timer->signals, NULL);
}

static int wait_signal(struct timer *timer, uint64_t *expired)
{
	siginfo_t info;
	int signal = sys_sigwait(&timer->signals, &info);

	if (signal < 0)
		return signal;
	*expired = signal == SIGRTMIN && info.si_overrun > 0 ? 1 + (uint64_t)info.si_overrun : 1;
	return signal == WORKER_STOP_SIGNAL ? -EINTR : 0;
}

static int arm_itimer(struct timer *timer)
{
	block_signals(timer, SIGALRM);

	int64_t first_ns = timer->due_ns - clock_now_ns();
	int64_t period_us = timer->period_ns / 1000, first_us = first_ns > 1000 ? first_ns / 1000 : 1;
	struct itimerval interval = {
		.it_interval = { .tv_sec = (time_t)(period_us / 1000000), .tv_usec = (long)(period_us % 1000000) },
		.it_value = { .tv_sec = (time_t)(first_us / 1000000), .tv_usec = (long)(first_us % 1000000) },
	};

	return setitimer(ITIMER_REAL, &interval, NULL) < 0 ? -errno : 0;
}

/*
 * ITIMER_REAL does not say how many expirations it merged. When late by a period or more, ask when the next one comes: what
 * lies between is missed. (The kernel moves the timer on when the signal is taken, so the clock alone can be off by one.)
 */
static uint32_t missed_by_itimer(const struct timer *timer, int64_t now_ns, uint64_t expired)
{
	struct itimerval rest;
	uint32_t by_clock = missed_by_clock(timer, now_ns, expired);

	if (!by_clock || getitimer(ITIMER_REAL, &rest) < 0)
		return by_clock;
	int64_t next_ns = clock_now_ns() + ((int64_t)rest.it_value.tv_sec * 1000000 + rest.it_value.tv_usec) * 1000;

	/* Nearest point of the grid: the timer counts in microseconds and was armed a moment late. */
	return (uint32_t)((next_ns - timer->due_ns + timer->period_ns / 2) / timer->period_ns - 1);
}

static void disarm_itimer(struct timer *timer)
{
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };

	(void)timer;
	setitimer(ITIMER_REAL, &never, NULL);
}

static int arm_posix(struct timer *timer)
{
	block_signals(timer, SIGRTMIN);

	struct sys_sigevent event = { .signal = SIGRTMIN, .notify = 4 /* SIGEV_THREAD_ID */, .thread = sys_gettid() };

	if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer->id) < 0)
		return -errno;
	return sys_timer_arm(timer->id, timer->due_ns, timer->period_ns);
}

static void disarm_posix(struct timer *timer)
{
	syscall(SYS_timer_delete, timer->id);
}

static int arm_timerfd(struct timer *timer)
{
	timer->id = sys_result(syscall(SYS_timerfd_create, CLOCK_MONOTONIC, 0));
	return timer->id < 0 ? timer->id : sys_timerfd_arm(timer->id, timer->due_ns, timer->period_ns);
}

static int wait_timerfd(struct timer *timer, uint64_t *expired)
{
	return read(timer->id, expired, sizeof(*expired)) < 0 ? -errno : 0;
}

static void disarm_timerfd(struct timer *timer)
{
	if (timer->id >= 0)
		close(timer->id);
}

static const char *timerfd_unsupported(void)
{
	int fd = sys_result(syscall(SYS_timerfd_create, CLOCK_MONOTONIC, 0));

	if (fd < 0)
		return "this kernel has no timerfd (it came with Linux 2.6.25, and can be left out)";
	close(fd);
	return NULL;
}

static const struct waiter absolute = {
	{ .name = "clock_nanosleep", .help = "clock_nanosleep() to an absolute time", .on_grid = true },
	arm_nothing, wait_absolute, missed_by_clock, disarm_nothing,
};
static const struct waiter relative = {
	{ .name = "clock_nanosleep_relative", .help = "clock_nanosleep() for one period" },
	arm_relative, wait_relative, missed_by_clock, disarm_nothing,
};
static const struct waiter plain = {
	{ .name = "nanosleep", .help = "nanosleep() for one period" },
	arm_relative, wait_nanosleep, missed_by_clock, disarm_nothing,
};
static const struct waiter itimer = {
	{ .name = "setitimer",
	  .help = "setitimer() with SIGALRM taken by sigwaitinfo(); one thread only",
	  .on_grid = true, .single = true, .in_us = true },
	arm_itimer, wait_signal, missed_by_itimer, disarm_itimer,
};
static const struct waiter posix = {
	{ .name = "posix_timer",
	  .help = "timer_settime() with a signal to the thread, taken by sigwaitinfo()",
	  .on_grid = true },
	arm_posix, wait_signal, missed_by_kernel, disarm_posix,
};
static const struct waiter timerfd = {
	{ .name = "timerfd",
	  .help = "timerfd_settime() and read()",
	  .on_grid = true, .unsupported = timerfd_unsupported },
	arm_timerfd, wait_timerfd, missed_by_kernel, disarm_timerfd,
};

static const struct method *const methods[] = {
	&absolute.method, &relative.method, &plain.method, &itimer.method, &posix.method, &timerfd.method, NULL,
};

static int timer_open(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	struct timer *timer = calloc(1, sizeof(*timer));

	if (!timer)
		return -ENOMEM;
	/* The method is the first member of its waiter. */
	timer->waiter = (const struct waiter *)(const void *)method;
	timer->due_ns = first_due_ns;
	timer->period_ns = period_ns;
	timer->id = -1;
	worker->state = timer;
	return timer->waiter->arm(timer);
}

static int timer_take(struct worker *worker, struct activation *activation)
{
	struct timer *timer = worker->state;
	uint64_t expired = 1;
	int err = timer->waiter->wait(timer, &expired);
	int64_t now_ns = clock_now_ns();

	if (err < 0)
		return err;
	activation->due_ns = timer->due_ns;
	activation->values[0] = now_ns - timer->due_ns;
	activation->lost = 0;
	activation->missed = timer->waiter->missed(timer, now_ns, expired);
	if (timer->waiter->method.on_grid)
		timer->due_ns += (1 + (int64_t)activation->missed) * timer->period_ns;
	else
		timer->due_ns = now_ns + timer->period_ns;
	return 0;
}

static void timer_close(struct worker *worker)
{
	struct timer *timer = worker->state;

	if (timer)
		timer->waiter->disarm(timer);
	free(timer);
	worker->state = NULL;
}

const struct probe probe_timer = {
	.name = "timer",
	.help = "from a timer's due time to the clock reading of the thread it wakes",
	.field = "latency",
	.unit = "ns",
	.ends_with_sleep = true,
	.methods = methods,
	.open = timer_open,
	.take = timer_take,
	.close = timer_close,
};
