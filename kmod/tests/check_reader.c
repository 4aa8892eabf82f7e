// SPDX-License-Identifier: GPL-2.0-only
/* How events are read: batches, poll, slow readers; and that the summary has them all. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MANY 12000

static void batches(void)
{
	struct rtproof_start start = usual(RTPROOF_TIMER);
	static struct rtproof_event events[100];
	int device;

	start.batch = 20;
	start.batch_ns = 10000 * MS;
	device = started(&start);
	EXPECT(read(device, events, sizeof(events)) >= (ssize_t)(20 * sizeof(*events)));
	EXPECT(read(device, events, 5 * sizeof(*events)) == 5 * sizeof(*events));
	EXPECT(now_ns() > start.first_due_ns + 24 * MS);
	close(device);
}

static void batch_time(void)
{
	struct rtproof_start start = usual(RTPROOF_TIMER);
	static struct rtproof_event events[1000];
	int device;
	ssize_t bytes;

	start.batch = 1000;
	start.batch_ns = 20 * MS;
	device = started(&start);
	bytes = read(device, events, sizeof(events));
	EXPECT(bytes > 0 && bytes < (ssize_t)sizeof(events));
	close(device);
}

/* Nothing yet when the time of the batch is over: it goes on to the first event. */
static void batch_time_without_event(void)
{
	struct rtproof_start start = usual(RTPROOF_TIMER);
	struct rtproof_event events[10];
	int device;

	start.first_due_ns = now_ns() + 50 * MS;
	start.batch = 10;
	start.batch_ns = 2 * MS;
	device = started(&start);
	EXPECT(read(device, events, sizeof(events)) == sizeof(*events));
	EXPECT(events[0].index == 0);
	close(device);
}

static int ready(int device, int timeout_ms)
{
	struct pollfd entry = { .fd = device, .events = POLLIN };

	return poll(&entry, 1, timeout_ms) < 0 ? -1 : entry.revents;
}

static void polled_in(uint32_t mode)
{
	struct rtproof_start start = usual(mode);
	struct rtproof_event events[16];
	int device;

	start.first_due_ns = now_ns() + 30 * MS;
	start.batch = mode == RTPROOF_USER ? 1 : 8;
	start.batch_ns = 10000 * MS;
	device = started(&start);
	fcntl(device, F_SETFL, O_NONBLOCK);
	EXPECT(error_of((int)read(device, events, sizeof(events))) == EAGAIN);
	EXPECT(ready(device, 0) == 0);
	EXPECT(ready(device, 5000) == POLLIN);
	EXPECT(read(device, events, sizeof(events)) >= (ssize_t)(start.batch * sizeof(*events)));
	usleep(30000);
	ioctl(device, RTPROOF_STOP);
	EXPECT(ready(device, 0) == (POLLIN | POLLHUP));
	EXPECT(read_all(device, events, 16) > 0);
	while (read_all(device, events, 16) > 0)
		;
	EXPECT(ready(device, 0) == POLLHUP);
	EXPECT(read(device, events, sizeof(events)) == 0);
	close(device);
}

static void polled(void)
{
	int device = open("/dev/rtproof", O_RDWR);

	EXPECT(ready(device, 0) == POLLERR);
	close(device);
	for (uint32_t mode = RTPROOF_TIMER; mode <= RTPROOF_LOOP; mode++)
		polled_in(mode);
}

static unsigned int bin_of(uint64_t value)
{
	unsigned int e;

	if (value < 1024)
		return (unsigned int)value;
	e = 63 - (unsigned int)__builtin_clzll(value);
	return 1024 + (e - 10) * 512 + (unsigned int)(value >> (e - 9)) - 512;
}

/* The kernel's sums of a stage against our own. */
static void compare(int device, uint32_t stage, const struct rtproof_event *events, int count)
{
	static uint64_t bins[RTPROOF_BINS];
	struct rtproof_summary summary = summary_of(device, stage, bins);
	uint64_t squares_low = 0, squares_high = 0;
	int64_t sum = 0, min = INT64_MAX, max = INT64_MIN;

	for (int i = 0; i < count; i++) {
		int64_t value = stage == RTPROOF_STAGE_IRQ ? events[i].irq_ns : events[i].task_ns;

		sum += value;
		/* All below 4 s, so 64 bits hold the square. */
		squares_low += (uint64_t)value * (uint64_t)value;
		squares_high += squares_low < (uint64_t)value * (uint64_t)value;
		min = value < min ? value : min;
		max = value > max ? value : max;
		EXPECT(value >= 0 && bins[bin_of((uint64_t)value)]-- > 0);
	}
	for (int i = 0; i < RTPROOF_BINS; i++)
		EXPECT(bins[i] == 0);
	EXPECT(summary.count == (uint64_t)count && summary.lost == 0 && summary.below == 0 && summary.above == 0);
	EXPECT(summary.sum == sum && summary.min == min && summary.max == max);
	EXPECT(max < 1ll << 32 && summary.sum_squares_low == squares_low && summary.sum_squares_high == squares_high);
}

static void sums(void)
{
	struct rtproof_start start = usual(RTPROOF_TASK);
	static struct rtproof_event events[1000];
	int device, count;

	start.period_ns = MS / 5;
	device = started(&start);
	count = read_all(device, events, 300);
	summary_of(device, RTPROOF_STAGE_TASK, NULL); /* one in between must change nothing */
	count += read_all(device, events + count, 300);
	ioctl(device, RTPROOF_STOP);
	count += read_all(device, events + count, 400);
	EXPECT(count >= 600);
	compare(device, RTPROOF_STAGE_IRQ, events, count);
	compare(device, RTPROOF_STAGE_TASK, events, count);
	close(device);
}

/* The warm-up and what comes after the end are read, but are not in the sums. */
static void range(void)
{
	struct rtproof_start start = usual(RTPROOF_TASK);
	static struct rtproof_event events[1000];
	struct rtproof_summary summary;
	int device, count;

	start.from_index = 20;
	start.end_index = 70;
	device = started(&start);
	count = read_all(device, events, 100);
	ioctl(device, RTPROOF_STOP);
	summary = summary_of(device, RTPROOF_STAGE_TASK, NULL);
	EXPECT(count == 100);
	EXPECT(summary.count + summary.missed == 50);
	close(device);
}

/* Nobody reads for longer than the ring lasts. */
static void slow_in(uint32_t mode)
{
	struct rtproof_start start = usual(mode);
	struct rtproof_event *events = calloc(MANY, sizeof(*events));
	struct rtproof_summary summary;
	uint64_t lost = 0;
	int device, count;

	start.period_ns = MS / 20;
	device = started(&start);
	usleep(300000);
	count = read_all(device, events, 4196);
	EXPECT(count == 4196);
	ioctl(device, RTPROOF_STOP);
	count += read_all(device, events + count, MANY - count);
	for (int i = 0; i < count; i++)
		lost += events[i].lost;
	summary = summary_of(device, mode == RTPROOF_TIMER ? RTPROOF_STAGE_IRQ : RTPROOF_STAGE_TASK, NULL);
	EXPECT(lost > 500);
	EXPECT(summary.lost == lost);
	EXPECT(summary.count == (uint64_t)count + lost);
	EXPECT(events[count - 1].index + 1 <= summary.count + summary.missed);
	close(device);
	free(events);
}

static void slow(void)
{
	slow_in(RTPROOF_TIMER);
	slow_in(RTPROOF_TASK);
	slow_in(RTPROOF_LOOP);
}

const struct check reader_checks[] = {
	{ "batches", batches }, { "batch-time", batch_time }, { "batch-time-without-event", batch_time_without_event },
	{ "poll", polled }, { "sums", sums }, { "range", range }, { "slow-reader", slow }, { 0 },
};
