/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/timerlat/timerlat.h"

#include "measure/worker.h"
#include "probes/timerlat/tracer.h"
#include "system/clock.h"
#include "system/text.h"
#include "system/threads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_ROOM = 16384, STATS_ROOM = 1024, START_TRIES = 1000 };

#define START_PAUSE_NS 1000000

/* Between looks at the trace: seldom enough to leave the measured task in peace. Nobody sleeps in read(), so nobody is woken. */
#define LOOK_NS 50000000

/* The thread that the tracer wakes through timerlat_fd: nothing else may be in its way, so it does nothing else. */
struct returner {
	pthread_t thread;
	const struct worker *worker;
	int told; /* where it says how its start went */
	uint32_t stop, tid;
	bool runs;
};

struct timerlat {
	int pipe;
	struct latency_track track;
	struct returner returner;
	struct activation ahead;
	bool has_ahead;
	int64_t asked_to_stop_ns;
	size_t length, at; /* of the text, and of it what has been read */
	char text[TEXT_ROOM];
};

const char *const timerlat_fields[2][4] = {
	[TRACER_KERNEL] = { "irq", "thread" },
	[TRACER_USER] = { "irq", "thread", "user" },
};

static int enter_as(struct returner *self)
{
	const struct worker *worker = self->worker;
	struct cpus cpu = { { 0 } };
	char path[TRACER_PATH];

	cpus_add(&cpu, worker->cpu);
	int err = cpus_set_affinity(0, &cpu);

	if (!err)
		err = sys_set_policy(0, (int)worker->policy, worker->priority);
	if (err)
		return err;
	tracer_user_path(worker->cpu, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void *return_again_and_again(void *argument)
{
	struct returner *self = argument;
	int fd = enter_as(self);
	char nothing;

	self->tid = (uint32_t)sys_gettid();
	if (write(self->told, &fd, sizeof(fd)) != sizeof(fd))
		return NULL;
	while (fd >= 0 && !word_load(&self->stop) && (read(fd, &nothing, 1) >= 0 || errno == EINTR))
		;
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int returner_start(struct returner *returner, const struct worker *worker)
{
	int ends[2], answer = -EIO;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*returner = (struct returner){ .worker = worker, .told = ends[1] };
	int err = thread_start(&returner->thread, return_again_and_again, returner);

	returner->runs = !err;
	if (!err && read(ends[0], &answer, sizeof(answer)) == sizeof(answer) && answer < 0)
		err = answer;
	close(ends[0]);
	close(ends[1]);
	return err;
}

/* It comes back within a period, if the tracer is alive; and with a signal, if not. */
static void returner_stop(struct returner *returner)
{
	if (!returner->runs)
		return;
	word_store(&returner->stop, 1);
	if (returner->tid)
		syscall(SYS_tgkill, getpid(), returner->tid, WORKER_STOP_SIGNAL);
	pthread_join(returner->thread, NULL);
}

/* The kernel's task gives itself a policy when it runs first; what is set before that does not last. */
static int await_policy(int task)
{
	for (int i = 0; i < START_TRIES && sys_get_policy(task) == POLICY_OTHER; i++)
		sys_sleep(CLOCK_MONOTONIC, 0, START_PAUSE_NS);
	return sys_get_policy(task) == POLICY_OTHER ? -ETIMEDOUT : task;
}

/* The thread that is woken: the kernel's on this CPU, or ours. */
static int find_task(struct worker *worker, enum tracer_task task, struct returner *returner)
{
	if (task == TRACER_KERNEL) {
		worker->failed_at = "find the timerlat task of its CPU";
		int id = tracer_task_id(worker->cpu);

		return id < 0 ? id : await_policy(id);
	}
	worker->failed_at = "start the thread that timerlat wakes";
	int err = returner_start(returner, worker);

	return err ? err : (int)returner->tid;
}

static int attach(struct worker *worker, enum tracer_task task, struct timerlat *timerlat)
{
	char path[TRACER_PATH];
	int found = find_task(worker, task, &timerlat->returner);

	if (found < 0)
		return found;
	int err = worker_adopt(worker, found);

	/* To make lines of text and to take them apart again is work, for which no other thread shall wait. The buffer is large. */
	if (!err && worker->policy == POLICY_OTHER)
		err = sys_set_policy(0, POLICY_IDLE, 0);
	if (err)
		return err;
	worker->failed_at = "read the trace of its CPU";
	tracer_cpu_path(worker->cpu, "trace_pipe", path);
	timerlat->pipe = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return timerlat->pipe < 0 ? -errno : 0;
}

int timerlat_open(struct worker *worker, enum tracer_task task, int64_t period_ns)
{
	struct timerlat *timerlat;
	int err = tracer_start(task, worker->cpus, worker->cpu, period_ns, &worker->failed_at);

	if (err)
		return err;
	timerlat = calloc(1, sizeof(*timerlat));
	worker->state = timerlat;
	if (!timerlat) {
		tracer_stop(worker->cpu);
		return -ENOMEM;
	}
	timerlat->pipe = -1;
	timerlat->track.fields = (int)worker->fields;
	timerlat->track.period_ns = period_ns;
	return attach(worker, task, timerlat);
}

/* More text behind what has not been read yet. -EAGAIN: there is none now. */
static int fill(struct timerlat *timerlat)
{
	timerlat->length -= timerlat->at;
	memmove(timerlat->text, timerlat->text + timerlat->at, timerlat->length);
	timerlat->at = 0;
	if (timerlat->length == TEXT_ROOM) /* no line is that long */
		timerlat->length = 0;
	ssize_t n = read(timerlat->pipe, timerlat->text + timerlat->length, TEXT_ROOM - timerlat->length);

	if (n <= 0)
		return n < 0 ? -errno : -EAGAIN;
	timerlat->length += (size_t)n;
	return 0;
}

/* The next line as a string; NULL if there is no whole one. */
static const char *next_line(struct timerlat *timerlat)
{
	char *line = timerlat->text + timerlat->at;
	char *end = memchr(line, '\n', timerlat->length - timerlat->at);

	if (!end)
		return NULL;
	*end = '\0';
	timerlat->at = (size_t)(end - timerlat->text) + 1;
	return line;
}

/* The next activation of those the tracer has told of. -EAGAIN: there is none now. */
static int look(struct timerlat *timerlat, struct activation *activation)
{
	int err = 0;

	while (!err) {
		struct latency_line parsed;
		const char *line = next_line(timerlat);

		if (!line)
			err = fill(timerlat);
		else if (latency_line_parse(line, &parsed) && latency_track_add(&timerlat->track, &parsed, activation))
			return 0;
	}
	return err;
}

int timerlat_take(struct worker *worker, struct activation *activation)
{
	struct timerlat *timerlat = worker->state;
	int err;

	if (timerlat->has_ahead) {
		*activation = timerlat->ahead;
		timerlat->has_ahead = false;
		return 0;
	}
	do {
		err = look(timerlat, activation);
		if (err != -EAGAIN)
			return err;
		err = sys_sleep(CLOCK_MONOTONIC, 0, LOOK_NS);
	} while (!err);
	return err;
}

/* The tracer goes on; what is due after the thread was asked to stop is nobody's any more. */
bool timerlat_pending(struct worker *worker)
{
	struct timerlat *timerlat = worker->state;

	if (timerlat->has_ahead)
		return true;
	if (!timerlat->asked_to_stop_ns)
		timerlat->asked_to_stop_ns = clock_now_ns();
	timerlat->has_ahead = look(timerlat, &timerlat->ahead) == 0 || latency_track_flush(&timerlat->track, &timerlat->ahead);
	if (timerlat->has_ahead && timerlat->ahead.due_ns > timerlat->asked_to_stop_ns)
		timerlat->has_ahead = false;
	return timerlat->has_ahead;
}

/* What the trace's buffer says: entries, overruns. */
static void keep_stats(struct worker *worker)
{
	struct probe_file *file = &worker->files[worker->n_files];
	char path[TRACER_PATH], *content = malloc(STATS_ROOM);

	tracer_cpu_path(worker->cpu, "stats", path);
	int length = content ? text_read_file(path, content, STATS_ROOM) : -ENOMEM;

	if (length < 0) {
		free(content);
		return;
	}
	snprintf(file->path, sizeof(file->path), "timerlat/thread%d/stats", worker->number);
	file->content = content;
	file->length = (size_t)length;
	worker->n_files++;
}

void timerlat_close(struct worker *worker)
{
	struct timerlat *timerlat = worker->state;

	if (!timerlat)
		return;
	keep_stats(worker);
	returner_stop(&timerlat->returner);
	if (timerlat->pipe >= 0)
		close(timerlat->pipe);
	tracer_stop(worker->cpu);
	free(timerlat);
	worker->state = NULL;
}
