/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "facts.h"
#include "facts_parts.h"

#include "clock.h"
#include "processes.h"
#include "run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { KERNEL_LINES_MOST = 200 };

void fact(struct run *run, enum moment moment, const char *key, const char *value)
{
	record_fact(&run->record, run_time_ns(run), WHOLE_RUN, moment, key, "%s", value);
}

void fact_number(struct run *run, int thread, enum moment moment, const char *key, int64_t value)
{
	record_fact(&run->record, run_time_ns(run), thread, moment, key, "%lld", (long long)value);
}

static void fact_error(struct run *run, enum moment moment, const char *key, int err)
{
	record_fact(&run->record, run_time_ns(run), WHOLE_RUN, moment, key, "unavailable: %s", strerror(-err));
}

void fact_of_memory(struct run *run, int err)
{
	if (!run->config->lock_memory)
		fact(run, MOMENT_START, "memory_locked", "no: not asked for");
	else if (err)
		record_fact(&run->record, run_time_ns(run), WHOLE_RUN, MOMENT_START, "memory_locked", "no: %s",
			    strerror(-err));
	else
		fact(run, MOMENT_START, "memory_locked", "yes");
}

static void fact_of_dma_latency(struct run *run)
{
	if (run->config->dma_latency_us < 0)
		fact(run, MOMENT_START, "dma_latency", "left alone");
	else if (run->dma_latency_fd < 0)
		fact_error(run, MOMENT_START, "dma_latency", run->dma_latency_fd);
	else
		record_fact(&run->record, run_time_ns(run), WHOLE_RUN, MOMENT_START, "dma_latency",
			    "/dev/cpu_dma_latency held at %lld us", (long long)run->config->dma_latency_us);
}

void facts_open(struct run *run)
{
	system_collect(run->system);
	rt_threads_collect(&run->rt_threads, true, &run->rt_at_start);
	run->clocks = clock_both();
	run->kmsg_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (run->kmsg_fd < 0)
		run->kmsg_fd = -errno;
	else
		(void)lseek(run->kmsg_fd, 0, SEEK_END); /* only what comes from now on */
}

void facts_close(struct run *run)
{
	system_free(run->system);
	rt_threads_free(&run->rt_threads);
	bytes_free(&run->rt_at_start);
	if (run->kmsg_fd >= 0)
		close(run->kmsg_fd);
}

/* A nanosecond with high-resolution timers, else a tick. */
static void fact_of_resolution(struct run *run)
{
	struct timespec t;

	if (clock_getres(CLOCK_MONOTONIC, &t) == 0)
		fact_number(run, WHOLE_RUN, MOMENT_START, "clock_resolution_ns", t.tv_sec * NS_PER_SECOND + t.tv_nsec);
}

void facts_at_start(struct run *run)
{
	facts_begin(run);
	facts_series(run);
	facts_asked(run);
	facts_announce_counters(run);
	if (getenv("RTPROOF_VIRTUAL_TIME"))
		fact(run, MOMENT_START, "virtual_time", getenv("RTPROOF_VIRTUAL_TIME"));
	struct process self = { .pid = getpid() };

	processes_self(&self);
	fact_number(run, WHOLE_RUN, MOMENT_START, "agent_pid", self.pid);
	fact(run, MOMENT_START, "clock", clock_name());
	fact_number(run, WHOLE_RUN, MOMENT_START, "clock_read_ns", clock_cost_ns());
	fact_of_dma_latency(run);
	if (run->kmsg_fd < 0)
		fact_error(run, MOMENT_START, "kmsg", run->kmsg_fd);
	else
		fact(run, MOMENT_START, "kmsg", "read once a second");
	if (run->guard_runs)
		record_fact(&run->record, run_time_ns(run), WHOLE_RUN, MOMENT_START, "guard", "fifo %d, twice a second",
			    run->guard_priority);
	fact_of_resolution(run);
	facts_files_at_start(run);
}

void facts_of_writer(struct run *run)
{
	struct cpus cpus;
	char text[CPUS_TEXT];

	cpus_get_affinity(0, &cpus);
	cpus_format(&cpus, text, sizeof(text));
	record_fact(&run->record, run_time_ns(run), WHOLE_RUN, MOMENT_START, "writer", "%s, nice %d, CPUs %s",
		    policy_name(sys_get_policy(0)), getpriority(PRIO_PROCESS, (id_t)sys_gettid()), text);
}

/* A line of /dev/kmsg is "priority,number,microseconds,flags;text". */
static void write_kernel_lines(struct run *run)
{
	char line[1024];

	while (run->kmsg_fd >= 0 && run->kernel_lines < KERNEL_LINES_MOST) {
		ssize_t n = read(run->kmsg_fd, line, sizeof(line) - 1);

		if (n < 0 && errno == EPIPE)
			continue; /* some were overwritten before they could be read */
		if (n <= 0)
			return;
		line[n] = '\0';
		char *text = strchr(line, ';');

		text = text ? text + 1 : line;
		text[strcspn(text, "\n")] = '\0';
		run->kernel_lines++;
		record_event(&run->record, run_time_ns(run), WHOLE_RUN, "kernel",
			     run->kernel_lines < KERNEL_LINES_MOST ? text : "(more lines; not kept)");
	}
}

static void check_clock(struct run *run)
{
	struct clock_pair now = clock_both();
	int64_t step_ns = clock_step_ns(&run->clocks, &now);
	char text[64];

	run->clocks = now;
	if (!step_ns)
		return;
	snprintf(text, sizeof(text), "somebody set the wall clock; by_ns=%lld", (long long)step_ns);
	record_event(&run->record, run_time_ns(run), WHOLE_RUN, "clock_stepped", text);
}

void facts_each_second(struct run *run)
{
	check_clock(run);
	facts_tick(run);
	if (!run->loads_read)
		facts_of_loads(run, MOMENT_DURING);
	run->loads_read = true;
	facts_rt_threads(run, MOMENT_DURING);
	write_kernel_lines(run);
	for (int i = 0; i < run->config->threads; i++) {
		struct worker *worker = &run->workers[i];

		facts_check_thread(run, worker);
		conditions_row(&worker->log, &worker->conditions, run_time_ns(run));
		if (worker->log.rows == CONDITIONS_ROWS)
			conditions_write(&worker->log, &worker->conditions, i, &run->record);
	}
}

void facts_at_end(struct run *run)
{
	for (int i = 0; i < run->config->threads; i++)
		if (word_load(&run->workers[i].done)) /* else it stalled and said nothing */
			facts_of_worker(run, &run->workers[i]);
	facts_of_loads(run, MOMENT_END);
	facts_files_at_end(run);
}
