// SPDX-License-Identifier: GPL-2.0-only
/* How sources end, and several at once. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

static void close_running(void)
{
	for (int i = 0; i < 100; i++) {
		struct rtproof_start start = usual((uint32_t)i % 4);
		struct rtproof_event event;
		int device;

		start.period_ns = MS / 10;
		start.first_due_ns = now_ns() + (uint64_t)i * 1000;
		device = started(&start);
		if (i % 3)
			EXPECT(read_all(device, &event, 1) == 1);
		EXPECT(close(device) == 0);
	}
}

static void several(void)
{
	struct rtproof_event events[50];
	int devices[12];

	for (uint32_t i = 0; i < 12; i++) {
		struct rtproof_start start = usual(i % 4);

		start.cpu = i % 2 ? 0 : -1;
		devices[i] = started(&start);
	}
	for (int i = 0; i < 12; i++)
		EXPECT(read_all(devices[i], events, 50) == 50);
	for (int i = 0; i < 12; i++)
		close(devices[i]);
}

static void *stop_soon(void *device)
{
	usleep(20000);
	ioctl(*(int *)device, RTPROOF_STOP);
	return NULL;
}

/* STOP ends a read() and a poll() that sleep. */
static void stop_sleeping(bool polling)
{
	struct rtproof_start start = usual(RTPROOF_TIMER);
	struct pollfd entry = { .events = POLLIN };
	struct rtproof_event event;
	pthread_t thread;
	int device;

	start.first_due_ns = now_ns() + 100000 * MS;
	device = entry.fd = started(&start);
	if (pthread_create(&thread, NULL, stop_soon, &device))
		EXPECT(!"no thread");
	if (polling)
		EXPECT(poll(&entry, 1, 10000) == 1 && entry.revents == POLLHUP);
	else
		EXPECT(read(device, &event, sizeof(event)) == 0);
	pthread_join(thread, NULL);
	close(device);
}

static void stop(void)
{
	stop_sleeping(false);
	stop_sleeping(true);
}

static void *read_one(void *device)
{
	struct rtproof_event event;

	EXPECT(read(*(int *)device, &event, sizeof(event)) == 0);
	return NULL;
}

/* Who will not wait does not wait for another reader either. */
static void second_reader(void)
{
	struct rtproof_start start = usual(RTPROOF_TIMER);
	struct rtproof_event event;
	pthread_t thread;
	int device;

	start.first_due_ns = now_ns() + 100000 * MS;
	device = started(&start);
	if (pthread_create(&thread, NULL, read_one, &device))
		EXPECT(!"no thread");
	usleep(20000);
	fcntl(device, F_SETFL, O_NONBLOCK);
	EXPECT(error_of((int)read(device, &event, sizeof(event))) == EAGAIN);
	ioctl(device, RTPROOF_STOP);
	pthread_join(thread, NULL);
	close(device);
}

static void nothing(int number)
{
	(void)number;
}

static void interrupted(void)
{
	struct rtproof_start start = usual(RTPROOF_USER);
	struct sigaction action = { .sa_handler = nothing };
	struct itimerval soon = { .it_value.tv_usec = 20000 };
	struct rtproof_event event;
	int device;

	start.first_due_ns = now_ns() + 100000 * MS;
	sigaction(SIGALRM, &action, NULL);
	device = started(&start);
	setitimer(ITIMER_REAL, &soon, NULL);
	EXPECT(error_of((int)read(device, &event, sizeof(event))) == EINTR);
	close(device);
}

static bool switch_cpu(const char *value)
{
	int file = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY);
	bool done = file >= 0 && write(file, value, 1) == 1;

	close(file);
	return done;
}

/* A CPU that goes takes its sources with it: they say so and do not go on elsewhere. */
static void cpu_gone(void)
{
	struct rtproof_event events[50];
	int devices[4];

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		skip("one CPU");
		return;
	}
	for (uint32_t mode = 0; mode < 4; mode++) {
		struct rtproof_start start = usual(mode);

		start.cpu = 1;
		devices[mode] = started(&start);
		EXPECT(read_all(devices[mode], events, 5) == 5);
	}
	EXPECT(switch_cpu("0"));
	for (int i = 0; i < 4; i++) {
		while (read_all(devices[i], events, 50) == 50)
			;
		EXPECT(error_of((int)read(devices[i], events, sizeof(events))) == ENODEV);
		close(devices[i]);
	}
	EXPECT(switch_cpu("1"));
}

const struct check life_checks[] = {
	{ "close-running", close_running }, { "several", several }, { "stop", stop }, { "second-reader", second_reader },
	{ "interrupted", interrupted },
	{ "cpu-gone", cpu_gone }, { 0 },
};
