/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes with many timers that all expire at the same instant. A kernel that runs timers in the interrupt goes through
 * all of them before anything else on that CPU.
 */
#include "system/sys.h"

#include "system/clock.h"
#include "loads/load.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

enum { WORKERS, TIMERS, PERIOD_US };
/* A prime number: the expiries wander through the periods of whatever is measured. */
enum { PERIOD_PRESET = 4099 };
enum { OTHER_FILES = 64, BATCH = 64 };

static const struct load_option options[] = {
	{ "workers", "processes (default: one for each CPU)", 1, LOAD_SLOTS, LOAD_PER_CPU },
	{ "timers", "timers of each (default: 1000)", 1, 100000, 1000 },
	{ "us", "between their expiries, in microseconds (default: 4099)", 100, 1000000, PERIOD_PRESET },
	{ NULL, NULL, 0, 0, 0 },
};

static int allow_files(int64_t count)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	if (limit.rlim_cur >= (rlim_t)count)
		return 0;
	limit.rlim_cur = (rlim_t)count;
	if (limit.rlim_max < (rlim_t)count)
		limit.rlim_max = (rlim_t)count;
	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -EMFILE : 0;
}

static int add_timer(int poll, int64_t first_ns, int64_t period_ns)
{
	int fd = (int)syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	return sys_timerfd_arm(fd, first_ns, period_ns);
}

/* Reading sets a timer going again, at the next instant of the grid that all have in common. */
static int serve(int poll, struct load_slot *slot)
{
	struct epoll_event events[BATCH];
	uint64_t expiries;

	for (;;) {
		int n = epoll_wait(poll, events, BATCH, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++)
			slot->work += read(events[i].data.fd, &expiries, sizeof(expiries)) == sizeof(expiries);
	}
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	int64_t period_ns = order->values[PERIOD_US] * 1000, first_ns = clock_now_ns() + period_ns;
	int poll = epoll_create1(EPOLL_CLOEXEC);
	int err = poll < 0 ? -errno : allow_files(order->values[TIMERS] + OTHER_FILES);

	for (int64_t i = 0; i < order->values[TIMERS] && !err; i++)
		err = add_timer(poll, first_ns, period_ns);
	return err ? err : serve(poll, slot);
}

const struct load load_timers = {
	.name = "timers",
	.help = "many timers that expire at the same instant",
	.unit = "expiries",
	.options = options,
	.work = work,
};
