/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/timerlat/tracer.h"

#include "system/text.h"
#include "system/undo.h"
#include "trace/tracefs.h"

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
	char place[96]; /* the instance, or the root */
	struct undo undo;
} tracer = { .mutex = PTHREAD_MUTEX_INITIALIZER };

const char *tracer_unsupported(enum tracer_task task)
{
	static char text[128];
	char tracers[TRACEFS_TEXT], path[TRACER_PATH];
	int err = tracefs_find(&tracer.root);

	if (err == -ENOENT && tracefs_reach(&tracer.root) == 0)
		err = 0;
	if (!err)
		err = tracefs_read(tracer.root, "available_tracers", tracers);
	if (err == -ENOENT)
		return "tracefs can't be reached: it is mounted neither at /sys/kernel/tracing nor at /sys/kernel/debug/tracing";
	if (err) {
		snprintf(text, sizeof(text), "tracefs can't be reached: %s", strerror(-err));
		return text;
	}
	if (!text_has_word(tracers, "timerlat"))
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
	if (err || text_has_word(options, wanted))
		return err;
	snprintf(path, sizeof(path), "%s/osnoise/options", tracer.root);
	return undo_replace(&tracer.undo, path, wanted, wanted == on ? off : on);
}

static bool is_tracing(const char *folder)
{
	char text[TRACEFS_TEXT];

	return tracefs_read(folder, "current_tracer", text) == 0 && (text_has_word(text, "timerlat") || text_has_word(text, "osnoise"));
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
	char place[96], text[TRACEFS_TEXT];

	*failed_at = "switch the timerlat tracer on";
	snprintf(place, sizeof(place), "%s/instances/" TRACEFS_OURS "%s", tracer.root, tracefs_owner());
	int err = undo_mkdir(&tracer.undo, place);

	if (!err)
		err = switch_on_in(place);
	if (err != -EINVAL)
		return err;
	if (tracefs_read(tracer.root, "current_tracer", text) || !text_has_word(text, "nop"))
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

static const char *const contexts[] = { "irq", "thread", "user-ret" };

/* The event is what stands behind the last ": #": names of tasks, which come before, may have anything in them. */
static const char *event_of(const char *text)
{
	const char *event = NULL;

	for (const char *at = strstr(text, ": #"); at; at = strstr(at + 1, ": #"))
		event = at;
	return event;
}

static int context_of(const char *name)
{
	for (int i = 0; i < 3; i++)
		if (!strcmp(contexts[i], name))
			return i;
	return -1;
}

/* "4.145437", which ends at end. -1 if it is no such time. */
static int64_t stamp_before(const char *text, const char *end)
{
	const char *begin = end;
	unsigned long long seconds, microseconds;
	int length = 0;

	while (begin > text && begin[-1] != ' ')
		begin--;
	if (sscanf(begin, "%9llu.%6llu%n", &seconds, &microseconds, &length) != 2 || begin + length != end)
		return -1;
	return (int64_t)seconds * NS_PER_SECOND + (int64_t)microseconds * 1000;
}

bool latency_line_parse(const char *text, struct latency_line *line)
{
	const char *event = event_of(text);
	unsigned long long id, latency_ns;
	char context[16], unit[4];

	if (!event || sscanf(event, ": #%10llu context %15s timer_latency %19llu %3s", &id, context, &latency_ns, unit) != 4)
		return false;
	line->id = (uint32_t)id;
	line->context = context_of(context);
	line->latency_ns = (int64_t)latency_ns;
	line->time_ns = stamp_before(text, event);
	return id <= UINT32_MAX && line->context >= 0 && line->time_ns >= 0 && latency_ns < INT64_MAX && !strcmp(unit, "ns");
}

static void begin(struct latency_track *track, const struct latency_line *line)
{
	track->id = line->id;
	track->reading = (struct activation){ .due_ns = line->time_ns - line->latency_ns };
}

static bool is_next(const struct latency_track *track, const struct latency_line *line)
{
	return line->id == track->id && line->context == track->seen && track->seen < track->fields;
}

static uint32_t limited(int64_t number)
{
	return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/*
 * Puts the activation that is whole in the place of the one held, which comes out. Between them lie due times that were missed,
 * or, where the numbers say that activations are not there, whose fate is unknown.
 */
static bool exchange(struct latency_track *track, struct activation *out)
{
	struct activation *now = &track->reading;
	int64_t leap = (now->due_ns - track->held.due_ns + track->period_ns / 2) / track->period_ns;
	int64_t due_ns = track->held.due_ns + leap * track->period_ns;

	if (leap < 1) /* a clock that goes back */
		return false;
	if (due_ns < now->due_ns)
		now->due_ns = due_ns;
	if (track->id == track->held_id + 1)
		track->held.missed = limited(leap - 1);
	else
		now->lost = limited(leap - 1);
	*out = track->held;
	return true;
}

bool latency_track_add(struct latency_track *track, const struct latency_line *line, struct activation *activation)
{
	bool had = track->holds, out = false;

	if (line->context == 0) {
		track->seen = 0;
		begin(track, line);
	}
	if (!is_next(track, line))
		return false;
	track->reading.values[track->seen++] = line->latency_ns;
	if (track->seen < track->fields)
		return false;
	if (had)
		out = exchange(track, activation);
	if (had && !out)
		return false;
	track->held = track->reading;
	track->held_id = track->id;
	track->holds = true;
	return out;
}

bool latency_track_flush(struct latency_track *track, struct activation *activation)
{
	bool had = track->holds;

	if (had)
		*activation = track->held;
	track->holds = false;
	return had;
}
