/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "tracer.h"

#include "text.h"
#include "tracefs.h"
#include "undo.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	pthread_mutex_t mutex;
	struct cpus users; /* CPUs that somebody measures with it */
	const char *root;
	char place[64]; /* the instance, or the root */
	struct undo undo;
} tracer = { .mutex = PTHREAD_MUTEX_INITIALIZER };

const char *tracer_unsupported(enum tracer_task task)
{
	static char text[128];
	char tracers[TRACEFS_TEXT], path[TRACER_PATH];
	int err = tracefs_find(&tracer.root);

	if (!err)
		err = tracefs_read(tracer.root, "available_tracers", tracers);
	if (err == -ENOENT)
		return "tracefs can't be reached: it is mounted neither at /sys/kernel/tracing nor at /sys/kernel/debug/tracing";
	if (err) {
		snprintf(text, sizeof(text), "tracefs can't be reached: %s", strerror(-err));
		return text;
	}
	if (!has_word(tracers, "timerlat"))
		return "this kernel has no timerlat tracer (CONFIG_TIMERLAT_TRACER)";
	tracer_user_path(0, path);
	if (task == TRACER_USER && access(path, F_OK) < 0)
		return "this kernel's timerlat wakes no thread of ours (timerlat_fd came with Linux 6.5)";
	return geteuid() ? "the timerlat tracer needs root" : NULL;
}

void tracer_cpu_path(int cpu, const char *file, char path[TRACER_PATH])
{
	snprintf(path, TRACER_PATH, "%s/per_cpu/cpu%d/%s", tracer.place, cpu, file);
}

void tracer_user_path(int cpu, char path[TRACER_PATH])
{
	snprintf(path, TRACER_PATH, "%s/osnoise/per_cpu/cpu%d/timerlat_fd", tracer.root, cpu);
}

static int set(const char *folder, const char *file, const char *value)
{
	char path[TRACER_PATH];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return undo_write(&tracer.undo, path, value);
}

/* As set(), but for what not every kernel has. */
static int set_if_there(const char *folder, const char *file, const char *value)
{
	int err = set(folder, file, value);

	return err == -ENOENT ? 0 : err;
}

/* Options have names: NO_ before the name switches one off. They came with Linux 6.2; before, it had tasks of its own only. */
static int set_workload(enum tracer_task task)
{
	const char *on = "OSNOISE_WORKLOAD", *off = "NO_OSNOISE_WORKLOAD", *wanted = task == TRACER_KERNEL ? on : off;
	char options[TRACEFS_TEXT], path[TRACER_PATH];
	int err = tracefs_read(tracer.root, "osnoise/options", options);

	if (err == -ENOENT)
		return 0;
	if (err || has_word(options, wanted))
		return err;
	snprintf(path, sizeof(path), "%s/osnoise/options", tracer.root);
	return undo_replace(&tracer.undo, path, wanted, wanted == on ? off : on);
}

static bool is_tracing(const char *folder)
{
	char text[TRACEFS_TEXT];

	return tracefs_read(folder, "current_tracer", text) == 0 && (has_word(text, "timerlat") || has_word(text, "osnoise"));
}

static int configure(enum tracer_task task, const struct cpus *cpus, int64_t period_ns, const char **failed_at)
{
	char list[CPUS_TEXT], period_us[24];
	int err;

	*failed_at = "tell the timerlat tracer its CPUs and tasks";
	cpus_format(cpus, list, sizeof(list));
	err = set(tracer.root, "osnoise/cpus", list);
	if (!err)
		err = set_workload(task);
	if (!err)
		err = set_if_there(tracer.root, "osnoise/stop_tracing_us", "0");
	if (!err)
		err = set_if_there(tracer.root, "osnoise/stop_tracing_total_us", "0");
	if (!err)
		err = set_if_there(tracer.root, "osnoise/print_stack", "0");
	if (err)
		return err;
	*failed_at = "set the timerlat tracer's period (100 us to 1 s)";
	snprintf(period_us, sizeof(period_us), "%lld", (long long)(period_ns / 1000));
	return set(tracer.root, "osnoise/timerlat_period_us", period_us);
}

static int switch_on_in(const char *place)
{
	int err;

	snprintf(tracer.place, sizeof(tracer.place), "%s", place);
	err = set(place, "trace_clock", "mono");
	return err ? err : set(place, "current_tracer", "timerlat");
}

/* Kernels before 5.16 trace at the top only. There another tracer may be at work. */
static int switch_on(const char **failed_at)
{
	char place[64], text[TRACEFS_TEXT];

	*failed_at = "switch the timerlat tracer on";
	snprintf(place, sizeof(place), "%s/instances/" TRACEFS_OURS "%d", tracer.root, getpid());
	int err = undo_mkdir(&tracer.undo, place);

	if (!err)
		err = switch_on_in(place);
	if (err != -EINVAL)
		return err;
	if (tracefs_read(tracer.root, "current_tracer", text) || !has_word(text, "nop"))
		return -EBUSY;
	return switch_on_in(tracer.root);
}

static int set_up(enum tracer_task task, const struct cpus *cpus, int64_t period_ns, const char **failed_at)
{
	*failed_at = "reach tracefs";
	int err = tracefs_find(&tracer.root);

	if (err)
		return err;
	*failed_at = "have the timerlat tracer, which somebody else uses";
	if (tracefs_in_use(tracer.root, is_tracing)) /* its settings are there but once */
		return -EBUSY;
	*failed_at = "start what puts the tracer's settings back";
	err = undo_open(&tracer.undo);
	if (!err)
		err = configure(task, cpus, period_ns, failed_at);
	return err ? err : switch_on(failed_at);
}

int tracer_start(enum tracer_task task, const struct cpus *cpus, int cpu, int64_t period_ns, const char **failed_at)
{
	int err = 0;

	pthread_mutex_lock(&tracer.mutex);
	*failed_at = "have a timerlat task for itself: each CPU has but one";
	if (cpus_has(&tracer.users, cpu))
		err = -EBUSY;
	else if (!cpus_count(&tracer.users))
		err = set_up(task, cpus, period_ns, failed_at);
	if (!err)
		cpus_add(&tracer.users, cpu);
	if (!cpus_count(&tracer.users))
		undo_close(&tracer.undo);
	pthread_mutex_unlock(&tracer.mutex);
	return err;
}

void tracer_stop(int cpu)
{
	pthread_mutex_lock(&tracer.mutex);
	cpus_remove(&tracer.users, cpu);
	if (!cpus_count(&tracer.users))
		undo_close(&tracer.undo);
	pthread_mutex_unlock(&tracer.mutex);
}

int tracer_task_id(int cpu)
{
	char wanted[32], path[300], name[32];
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	int id = -ESRCH;

	snprintf(wanted, sizeof(wanted), "timerlat/%d", cpu);
	while (folder && id < 0 && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (atoi(entry->d_name) > 0 && text_read_line(path, name, sizeof(name)) == 0 && !strcmp(name, wanted))
			id = atoi(entry->d_name);
	}
	if (folder)
		closedir(folder);
	return id;
}
