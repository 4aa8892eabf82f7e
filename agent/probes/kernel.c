/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel probe: what the module rtproof.ko sees of one timer, in its interrupt and in the task that is woken, be that a
 * task of the kernel or the measuring thread. Where there is no module the kernel's own tracer takes its place.
 */
#include "system/sys.h"

#include "probes/kernel/device.h"
#include "probes/common/cycles.h"
#include "probes/kernel/device.h"
#include "probes/timerlat/timerlat.h"
#include "measure/worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char path[] = "/dev/rtproof";

/* How one method asks the module. */
struct source {
	struct method method;
	enum rtproof_mode mode;
};

static const char *module_unsupported(void);

#define SOURCE(method_name, number, text)                                                                               \
	{ { .name = (method_name), .help = (text), .on_grid = true, .no_deadline = true, .no_timer = true,              \
	    .loop = (number) == RTPROOF_LOOP, .collects = (number) != RTPROOF_USER, .fields = device_fields[number], .unsupported = module_unsupported }, number }

static const struct source timer = SOURCE("timer", RTPROOF_TIMER, "the module's timer: to its interrupt");
static const struct source task = SOURCE("task", RTPROOF_TASK, "to the interrupt, and to a kernel task that it wakes");
static const struct source user = SOURCE("user", RTPROOF_USER, "to the interrupt, and to the measuring thread that sleeps in read()");
static const struct source loop = SOURCE("loop", RTPROOF_LOOP, "to a kernel task that sleeps until each due time by itself");

static const char *tracer_missing(void)
{
	return tracer_unsupported(TRACER_KERNEL);
}

static const char *both_missing(void)
{
	static char text[384];
	const char *module = module_unsupported(), *other = module ? tracer_missing() : NULL;

	if (!module || !other)
		return NULL;
	snprintf(text, sizeof(text), "%s, and %s", module, other);
	return text;
}

/* Not one of the module's. */
static const struct method timerlat = {
	.name = "timerlat",
	.help = "the kernel's tracer instead of the module: to the interrupt, and to its own task",
	.external = true,
	.keeps_period = true,
	.in_us = true,
	.no_deadline = true,
	.no_timer = true,
	.fields = timerlat_fields[TRACER_KERNEL],
	.unsupported = tracer_missing,
};

static const struct method *choose(void)
{
	return module_unsupported() ? &timerlat : &task.method;
}

static const struct method automatic = {
	.name = "auto",
	.help = "task with the module, else timerlat",
	.fields = device_fields[RTPROOF_TASK],
	.unsupported = both_missing,
	.choose = choose,
};

static const char *open_error(int err)
{
	if (err == EPERM || err == EACCES)
		return "the module rtproof.ko answers root (CAP_SYS_ADMIN) only";
	return err == ENOENT || err == ENXIO || err == ENODEV ? "the module rtproof.ko is not loaded" : strerror(err);
}

static const char *module_unsupported(void)
{
	static char text[128];
	uint32_t abi = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return open_error(errno);
	int known = ioctl(fd, RTPROOF_VERSION, &abi);

	close(fd);
	if (known == 0 && abi == RTPROOF_ABI)
		return NULL;
	snprintf(text, sizeof(text), "the module rtproof.ko speaks version %u of its interface, and this agent version %d", abi,
		 RTPROOF_ABI);
	return text;
}

static bool has_task(enum rtproof_mode mode)
{
	return mode == RTPROOF_TASK || mode == RTPROOF_LOOP;
}

static int start(struct worker *worker, const struct device *device)
{
	bool user_mode = device->mode == RTPROOF_USER, task_mode = has_task(device->mode);
	uint64_t from = (uint64_t)(worker->warmup_ns / worker->period_ns);
	const struct rtproof_start order = {
		.size = sizeof(order),
		.mode = device->mode,
		.cpu = worker->cpu,
		.policy = task_mode ? worker->policy : POLICY_OTHER,
		.priority = task_mode ? (uint32_t)worker->priority : 0,
		.batch = user_mode ? 1 : DEVICE_BATCH,
		.batch_ns = user_mode ? 0 : DEVICE_BATCH_NS,
		.first_due_ns = (uint64_t)device->first_due_ns,
		.period_ns = (uint64_t)device->period_ns,
		.from_index = from,
		.end_index = from + worker->count,
	};

	worker->failed_at = "start the module's source (its periods are from 20 us to 1 h)";
	return sys_result(ioctl(device->fd, RTPROOF_START, &order));
}

/* 0 for a task that can't be seen from here (another process namespace). */
static int adopt_task(struct worker *worker, int fd)
{
	int id = 0, err;

	worker->failed_at = "find the module's task";
	err = sys_result(ioctl(fd, RTPROOF_TASK_ID, &id));
	return err || id <= 0 ? err : worker_adopt(worker, id);
}

static int module_open(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	struct device *device = calloc(1, sizeof(*device));

	worker->state = device;
	if (!device)
		return -ENOMEM;
	/* The method is the first member of its source. */
	device->mode = ((const struct source *)(const void *)method)->mode;
	device->first_due_ns = first_due_ns;
	device->period_ns = period_ns;
	device->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (device->fd < 0)
		return -errno;
	int err = start(worker, device);

	return !err && has_task(device->mode) ? adopt_task(worker, device->fd) : err;
}

static int module_take(struct worker *worker, struct activation *activation)
{
	int err = device_take(worker->state, activation);

	if (err == -ENODEV)
		worker->failed_at = "go on, because its CPU was switched off";
	return err;
}

static void keep_account(struct worker *worker, int fd, uint32_t stage, const char *field)
{
	uint64_t *bins = calloc(RTPROOF_BINS, sizeof(*bins));
	struct rtproof_summary summary = { .size = sizeof(summary), .stage = stage, .bins_address = (uintptr_t)bins };

	if (bins && ioctl(fd, RTPROOF_SUMMARY, &summary) == 0 &&
	    account_file(&worker->files[worker->n_files], worker->number, field, &summary, bins) == 0)
		worker->n_files++;
	free(bins);
}

static void module_close(struct worker *worker)
{
	struct device *device = worker->state;

	if (device && device->fd >= 0) {
		(void)device_pending(device); /* stopped: the account is final */
		if (device->mode != RTPROOF_LOOP)
			keep_account(worker, device->fd, RTPROOF_STAGE_IRQ, "irq");
		if (has_task(device->mode))
			keep_account(worker, device->fd, RTPROOF_STAGE_TASK, "task");
		close(device->fd);
	}
	free(device);
	worker->state = NULL;
}

static const struct probe_option options[] = { BAND_OPTIONS, { NULL, NULL } };

static bool by_tracer(const struct worker *worker)
{
	return worker->method == &timerlat;
}

static int kernel_check(const struct method *method, const char *const *values, int64_t period_ns, char *why, size_t room)
{
	if (method == &loop.method)
		return band_check(values, period_ns, why, room);
	for (int i = 0; options[i].name; i++) {
		if (!values[i])
			continue;
		snprintf(why, room, "option '%s' is for method loop only", options[i].name);
		return -EINVAL;
	}
	return 0;
}

static int kernel_open(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	if (by_tracer(worker))
		return timerlat_open(worker, TRACER_KERNEL, period_ns);
	return module_open(worker, method, first_due_ns, period_ns);
}

static int kernel_take(struct worker *worker, struct activation *activation)
{
	return by_tracer(worker) ? timerlat_take(worker, activation) : module_take(worker, activation);
}

static bool kernel_pending(struct worker *worker)
{
	return by_tracer(worker) ? timerlat_pending(worker) : device_pending(worker->state);
}

static void kernel_close(struct worker *worker)
{
	if (by_tracer(worker))
		timerlat_close(worker);
	else
		module_close(worker);
}

static const struct method *const methods[] = {
	&automatic, &timer.method, &task.method, &user.method, &loop.method, &timerlat, NULL,
};

const struct probe probe_kernel = {
	.name = "kernel",
	.help = "from a timer's due time to its interrupt and to the task it wakes, as the kernel itself sees it",
	.field = "task",
	.unit = "ns",
	.methods = methods,
	.options = options,
	.check = kernel_check,
	.open = kernel_open,
	.take = kernel_take,
	.pending = kernel_pending,
	.close = kernel_close,
};
