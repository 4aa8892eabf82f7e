/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "device.h"

#include "clock.h"

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
