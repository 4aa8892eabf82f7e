/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/kernel/device.h"

#include "system/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *const device_fields[4][3] = {
	[RTPROOF_TIMER] = { "irq" },
	[RTPROOF_TASK] = { "irq", "task" },
	[RTPROOF_USER] = { "irq", "user" },
	[RTPROOF_LOOP] = { "task" },
};

/* The clock comes first: where the reader is the task that was woken, its reading is t2. */
static int fill(struct device *device)
{
	size_t room = sizeof(device->events[0]) * (device->mode == RTPROOF_USER ? 1 : DEVICE_BATCH);
	ssize_t length = read(device->fd, device->events, room);

	device->read_ns = clock_now_ns();
	device->n = device->at = 0;
	if (length < 0)
		return -errno;
	if (length == 0) /* nothing comes from a stopped source any more */
		return -EPIPE;
	if (length % (ssize_t)sizeof(device->events[0]))
		return -EPROTO;
	device->n = (int)(length / (ssize_t)sizeof(device->events[0]));
	return 0;
}

static bool has_stages(const struct device *device, const struct rtproof_event *event)
{
	bool irq = event->irq_ns != RTPROOF_NONE, task = event->task_ns != RTPROOF_NONE;

	return (irq || device->mode == RTPROOF_LOOP) && (task || device->mode == RTPROOF_TIMER || device->mode == RTPROOF_USER);
}

static void set_values(const struct device *device, const struct rtproof_event *event, struct activation *activation)
{
	activation->values[0] = device->mode == RTPROOF_LOOP ? event->task_ns : event->irq_ns;
	if (device->mode == RTPROOF_TASK)
		activation->values[1] = event->task_ns;
	if (device->mode == RTPROOF_USER)
		activation->values[1] = device->read_ns - activation->due_ns;
}

/* An index that leaps without a reason means that nobody knows what became of the due times in between. */
static int translate(struct device *device, const struct rtproof_event *event, struct activation *activation)
{
	uint64_t index = event->index, most = (uint64_t)INT64_MAX / (uint64_t)device->period_ns;

	if (!has_stages(device, event) || index < device->expected || index > most || event->missed > most - index)
		return -EPROTO;
	uint64_t leap = index - device->expected;

	activation->due_ns = device->first_due_ns + (int64_t)index * device->period_ns;
	activation->missed = event->missed;
	activation->lost = leap < UINT32_MAX ? (uint32_t)leap : UINT32_MAX;
	set_values(device, event, activation);
	device->expected = index + 1 + event->missed;
	return 0;
}

int device_take(struct device *device, struct activation *activation)
{
	int err = device->at < device->n ? 0 : fill(device);

	return err ? err : translate(device, &device->events[device->at++], activation);
}

bool device_pending(struct device *device)
{
	int err = 0;

	while (!device->stopped)
		device->stopped = ioctl(device->fd, RTPROOF_STOP, 0) == 0 || errno != EINTR;
	while (!err && device->at == device->n) {
		err = fill(device);
		if (err == -EINTR)
			err = 0;
	}
	return !err;
}

enum { HEAD_MOST = 512, LINE_MOST = 40, WIDE_DIGITS = 40 };

static void add(struct probe_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* There is room: see room_for(). */
static void add(struct probe_file *file, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	file->length += (size_t)vsnprintf(file->content + file->length, LINE_MOST + WIDE_DIGITS, format, arguments);
	va_end(arguments);
}

static size_t room_for(const uint64_t *bins)
{
	size_t used = 0;

	for (int i = 0; i < RTPROOF_BINS; i++)
		used += bins[i] != 0;
	return HEAD_MOST + used * LINE_MOST + LINE_MOST + WIDE_DIGITS;
}

/* A number of 128 bits in decimal: no 32-bit compiler has a type that wide. The text begins somewhere in the buffer. */
static const char *wide_text(uint64_t low, uint64_t high, char buffer[WIDE_DIGITS + 1])
{
	uint32_t parts[] = { (uint32_t)(high >> 32), (uint32_t)high, (uint32_t)(low >> 32), (uint32_t)low };
	int at = WIDE_DIGITS;

	buffer[at] = '\0';
	do {
		uint64_t rest = 0;

		for (int i = 0; i < 4; i++) {
			rest = rest << 32 | parts[i];
			parts[i] = (uint32_t)(rest / 10);
			rest %= 10;
		}
		buffer[--at] = (char)('0' + rest);
	} while (parts[0] || parts[1] || parts[2] || parts[3]);
	return buffer + at;
}

static void add_head(struct probe_file *file, const struct rtproof_summary *summary)
{
	char wide[WIDE_DIGITS + 1];

	add(file, "count %llu\n", summary->count);
	add(file, "missed %llu\n", summary->missed);
	add(file, "lost %llu\n", summary->lost);
	add(file, "rests %llu\n", summary->rests);
	add(file, "min %lld\n", summary->min);
	add(file, "max %lld\n", summary->max);
	add(file, "sum %lld\n", summary->sum);
	add(file, "sum_squares %s\n", wide_text(summary->sum_squares_low, summary->sum_squares_high, wide));
	add(file, "below %llu\n", summary->below);
	add(file, "above %llu\n", summary->above);
}

int account_file(struct probe_file *file, int thread, const char *field, const struct rtproof_summary *summary,
		 const uint64_t *bins)
{
	file->length = 0;
	file->content = malloc(room_for(bins));
	if (!file->content)
		return -ENOMEM;
	snprintf(file->path, sizeof(file->path), "rtproof.ko/thread%d/%s", thread, field);
	add_head(file, summary);
	for (int i = 0; i < RTPROOF_BINS; i++)
		if (bins[i])
			add(file, "bin %d %" PRIu64 "\n", i, bins[i]);
	return 0;
}
