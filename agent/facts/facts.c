/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "facts/facts.h"

#include "record/record.h"
#include "system/clock.h"
#include "system/processes.h"
#include "system/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { KERNEL_LINES_MOST = 200 };

static void fact(struct run *run, enum moment moment, const char *key, const char *value)
{
	run_fact(run, WHOLE_RUN, moment, key, "%s", value);
}

static void fact_error(struct run *run, enum moment moment, const char *key, int err)
{
	run_fact(run, WHOLE_RUN, moment, key, "unavailable: %s", strerror(-err));
}

static void fact_of_memory(struct run *run, int err)
{
	if (!run->config->lock_memory)
		fact(run, MOMENT_START, "memory_locked", "no: not asked for");
	else if (err)
		run_fact(run, WHOLE_RUN, MOMENT_START, "memory_locked", "no: %s", strerror(-err));
	else
		fact(run, MOMENT_START, "memory_locked", "yes");
}

static void fact_of_dma_latency(struct run *run, int fd)
{
	if (run->config->dma_latency_us < 0)
		fact(run, MOMENT_START, "dma_latency", "left alone");
	else if (fd < 0)
		fact_error(run, MOMENT_START, "dma_latency", fd);
	else
		run_fact(run, WHOLE_RUN, MOMENT_START, "dma_latency",
			 "/dev/cpu_dma_latency held at %lld us", (long long)run->config->dma_latency_us);
}

void facts_open(struct facts *facts, struct run *run)
{
	facts->run = run;
	system_collect(facts->system);
	rt_threads_collect(&facts->rt_threads, true, &facts->rt_at_start);
	facts->clocks = clock_both();
	facts->kmsg_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (facts->kmsg_fd < 0)
		facts->kmsg_fd = -errno;
	else
		(void)lseek(facts->kmsg_fd, 0, SEEK_END); /* only what comes from now on */
}

void facts_close(struct facts *facts)
{
	kernel_counts_close(facts->kernel_counts);
	system_free(facts->system);
	rt_threads_free(&facts->rt_threads);
	bytes_free(&facts->rt_at_start);
	if (facts->kmsg_fd >= 0)
		close(facts->kmsg_fd);
}

/* A nanosecond with high-resolution timers, else a tick. */
static void fact_of_resolution(struct run *run)
{
	struct timespec t;

	if (clock_getres(CLOCK_MONOTONIC, &t) == 0)
		run_fact_number(run, WHOLE_RUN, MOMENT_START, "clock_resolution_ns", t.tv_sec * NS_PER_SECOND + t.tv_nsec);
}

static void facts_series(struct run *run)
{
	int fields = run->config->fields;

	for (int i = 0; i < run->config->threads * fields; i++) {
		const struct worker *worker = &run->workers[i / fields];
		const struct method *method = worker->method;
		struct bytes *chunk = chunk_begin(&run->record, CHUNK_SERIES);

		put_u16(chunk, (uint16_t)i);
		put_u16(chunk, (uint16_t)(i / fields));
		put_u32(chunk, (uint32_t)worker->cpu);
		put_u8(chunk, (uint8_t)(method->on_grid | run->config->keep_samples << 1 | method->external << 2 | method->loop << 3));
		put_i64(chunk, worker->period_ns);
		put_i64(chunk, worker->phase_ns);
		put_string(chunk, worker->probe->name);
		put_string(chunk, method->name);
		put_string(chunk, method_field(worker->probe, method, i % fields));
		put_string(chunk, worker->probe->unit);
		chunk_end(&run->record);
		if (run->captures[i].above)
			above_announce(run->captures[i].above, &run->record, worker->phase_ns);
	}
}

static void facts_of_lists(struct run *run)
{
	const struct config *config = run->config;
	char text[CPUS_TEXT];
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < config->n_loads && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
					 config->loads[i].name);
	fact(run, MOMENT_ASKED, "loads", text);
	used = 0;
	text[0] = '\0';
	for (int i = 0; i < config->n_limits; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%lld", i ? "," : "",
					 (long long)config->limits_ns[i]);
	fact(run, MOMENT_ASKED, "limits_ns", text);
}

static void facts_asked(struct run *run, const struct granted *granted)
{
	const struct config *config = run->config;
	char text[CPUS_TEXT];
	const struct {
		const char *key;
		int64_t value;
	} numbers[] = {
		{ "period_ns", config->period_ns },     { "duration_ns", config->duration_ns },
		{ "samples", config->samples },         { "warmup_ns", config->warmup_ns },
		{ "threads", config->threads },         { "priority", config->asked_priority },
		{ "phase_ns", config->phase_ns },       { "dma_latency_us", config->dma_latency_us },
		{ "checkpoint_ns", config->checkpoint_ns },
	};

	fact(run, MOMENT_ASKED, "args", config->arguments);
	fact(run, MOMENT_ASKED, "probe", config->probe->name);
	fact(run, MOMENT_ASKED, "probe_options", config->probe_given);
	fact(run, MOMENT_ASKED, "method", config->method->name);
	if (config->probe->proxy_of)
		fact(run, MOMENT_ASKED, "proxy_of", config->probe->proxy_of);
	fact(run, MOMENT_ASKED, "policy", policy_name((int)config->asked_policy));
	fact(run, MOMENT_ASKED, "lock_memory", config->lock_memory ? "yes" : "no");
	fact(run, MOMENT_ASKED, "record", config->keep_samples ? "samples" : "summary");
	fact(run, MOMENT_ASKED, "allow_unprivileged", config->allow_unprivileged ? "yes" : "no");
	if (*config->refused)
		fact(run, MOMENT_START, "policy_refused", config->refused);
	if (config->claims)
		fact(run, MOMENT_ASKED, "claims", config->claims);
	if (config->until_decided)
		fact(run, MOMENT_ASKED, "until_decided", "yes");
	cpus_format(&config->cpus, text, sizeof(text));
	fact(run, MOMENT_ASKED, "cpus", text);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		run_fact_number(run, WHOLE_RUN, MOMENT_ASKED, numbers[i].key, numbers[i].value);
	if (config->period_step_ns)
		run_fact_number(run, WHOLE_RUN, MOMENT_ASKED, "period_step_ns", config->period_step_ns);
	if (config->stream_bytes)
		run_fact_number(run, WHOLE_RUN, MOMENT_ASKED, "stream_bytes", config->stream_bytes);
	facts_of_lists(run);
	if (!config->trace)
		return;
	fact(run, MOMENT_ASKED, "trace", config->trace);
	run_fact_number(run, WHOLE_RUN, MOMENT_ASKED, "trace_blocks_ns", config->trace_blocks_ns);
	run_fact_number(run, WHOLE_RUN, MOMENT_ASKED, "trace_seed", granted->trace_seed);
	if (*granted->trace_refused)
		fact(run, MOMENT_ASKED, "trace_refused", granted->trace_refused);
	if (!config->marks[0])
		return;
	fact(run, MOMENT_ASKED, "begin_mark", config->marks[0]);
	fact(run, MOMENT_ASKED, "end_mark", config->marks[1]);
}

/* A guest in virtual time tells them its first process, as the host tells them the kernel or the job. */
static void facts_of_virtual_time(struct run *run)
{
	static const struct {
		const char *variable, *name;
	} told[] = {
		{ "RTPROOF_VIRTUAL_TIME", "virtual_time" }, /* what counts the instructions */
		{ "RTPROOF_PACE_US", "turn_us" },            /* the longest turn of one of several CPUs */
		{ "RTPROOF_SOAKERS", "soakers" },            /* how many CPUs are kept busy */
		{ "RTPROOF_CPU_SHARES", "cpu_shares" },      /* what part of the instructions each CPU has */
	};

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		const char *value = getenv(told[i].variable);

		if (value)
			fact(run, MOMENT_START, told[i].name, value);
	}
}

void facts_at_start(struct facts *facts, const struct granted *granted)
{
	struct run *run = facts->run;

	record_begin(&run->record, run->origin_ns);
	facts_series(run);
	facts_asked(run, granted);
	facts_announce_counters(facts);
	if (run->config->trace)
		facts->kernel_counts = kernel_counts_open(run, facts->n_counters, *granted->trace_refused);
	facts_of_virtual_time(run);
	struct process self = { .pid = getpid() };

	processes_self(&self);
	run_fact_number(run, WHOLE_RUN, MOMENT_START, "agent_pid", self.pid);
	fact(run, MOMENT_START, "clock", clock_name());
	run_fact_number(run, WHOLE_RUN, MOMENT_START, "clock_read_ns", clock_cost_ns());
	fact_of_dma_latency(run, granted->dma_latency_fd);
	if (facts->kmsg_fd < 0)
		fact_error(run, MOMENT_START, "kmsg", facts->kmsg_fd);
	else
		fact(run, MOMENT_START, "kmsg", "read once a second");
	if (granted->guard_priority)
		run_fact(run, WHOLE_RUN, MOMENT_START, "guard", "fifo %d, twice a second", granted->guard_priority);
	fact_of_resolution(run);
	facts_files_at_start(facts);
	fact_of_memory(run, granted->lock_error);
}

void facts_of_writer(struct run *run)
{
	struct cpus cpus;
	char text[CPUS_TEXT];

	cpus_get_affinity(0, &cpus);
	cpus_format(&cpus, text, sizeof(text));
	run_fact(run, WHOLE_RUN, MOMENT_START, "writer", "%s, nice %d, CPUs %s",
		 policy_name(sys_get_policy(0)), getpriority(PRIO_PROCESS, (id_t)sys_gettid()), text);
}

/* A line of /dev/kmsg is "priority,number,microseconds,flags;text". */
static void write_kernel_lines(struct facts *facts)
{
	char line[1024];

	while (facts->kmsg_fd >= 0 && facts->kernel_lines < KERNEL_LINES_MOST) {
		ssize_t n = read(facts->kmsg_fd, line, sizeof(line) - 1);

		if (n < 0 && errno == EPIPE)
			continue; /* some were overwritten before they could be read */
		if (n <= 0)
			return;
		line[n] = '\0';
		char *text = strchr(line, ';');

		text = text ? text + 1 : line;
		text[strcspn(text, "\n")] = '\0';
		facts->kernel_lines++;
		record_event(&facts->run->record, run_time_ns(facts->run), WHOLE_RUN, "kernel",
			     facts->kernel_lines < KERNEL_LINES_MOST ? text : "(more lines; not kept)");
	}
}

static void check_clock(struct facts *facts)
{
	struct run *run = facts->run;
	struct clock_pair now = clock_both();
	int64_t step_ns = clock_step_ns(&facts->clocks, &now);
	char text[64];

	facts->clocks = now;
	if (!step_ns)
		return;
	snprintf(text, sizeof(text), "somebody set the wall clock; by_ns=%lld", (long long)step_ns);
	record_event(&run->record, run_time_ns(run), WHOLE_RUN, "clock_stepped", text);
}

/* What a probe said since it was last asked, as a further part of one file. */
static void write_said(struct run *run, struct worker *worker)
{
	const struct bytes nothing = { NULL, 0, 0, false };

	pthread_mutex_lock(&worker->said_mutex);
	struct bytes said = worker->said;

	worker->said = nothing;
	pthread_mutex_unlock(&worker->said_mutex);
	if (said.length)
		record_content(&run->record, run_time_ns(run), MOMENT_DURING, "exec/output", 0, (const char *)said.data, said.length);
	bytes_free(&said);
}

void facts_each_second(struct facts *facts)
{
	struct run *run = facts->run;

	check_clock(facts);
	facts_tick(facts);
	if (!facts->loads_read)
		facts_of_loads(facts, MOMENT_DURING);
	facts->loads_read = true;
	facts_rt_threads(facts, MOMENT_DURING);
	write_kernel_lines(facts);
	for (int i = 0; i < run->config->threads; i++) {
		struct worker *worker = &run->workers[i];

		write_said(run, worker);
		facts_check_thread(run, worker);
		conditions_row(&worker->log, &worker->conditions, run_time_ns(run));
		if (worker->log.rows == CONDITIONS_ROWS)
			conditions_write(&worker->log, &worker->conditions, i, &run->record);
	}
}

void facts_at_end(struct facts *facts)
{
	struct run *run = facts->run;

	for (int i = 0; i < run->config->threads; i++)
		if (word_load(&run->workers[i].done)) /* else it stalled and said nothing */
			facts_of_worker(run, &run->workers[i]);
	facts_of_loads(facts, MOMENT_END);
	facts_files_at_end(facts);
}

void facts_finish(struct run *run)
{
	struct bytes *chunk = chunk_begin(&run->record, CHUNK_END);

	put_i64(chunk, run_time_ns(run));
	put_u8(chunk, (uint8_t)run->notices.reason);
	put_string(chunk, run->notices.reason_text);
	put_u16(chunk, (uint16_t)(run->config->threads * run->config->fields));
	for (int i = 0; i < run->config->threads * run->config->fields; i++) {
		put_u16(chunk, run->captures[i].series);
		put_number(chunk, run->captures[i].obtained, 8);
		put_number(chunk, run->captures[i].missed, 8);
		put_number(chunk, run->captures[i].lost, 8);
	}
	chunk_end(&run->record);
}
