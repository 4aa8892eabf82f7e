/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "facts.h"

#include "clock.h"
#include "run.h"
#include "text.h"
#include "version.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

enum { RESET_ON_FORK = 0x40000000, KERNEL_LINES_MOST = 200 };

static const char *const files_at_start[] = {
	"/proc/version",
	"/proc/cmdline",
	"/proc/cpuinfo",
	"/proc/meminfo",
	"/proc/modules",
	"/proc/mounts",
	"/proc/sys/kernel/sched_rt_period_us",
	"/proc/sys/kernel/printk",
	"/proc/sys/kernel/osrelease",
	"/proc/sys/vm/overcommit_memory",
	"/proc/timer_list",
	"/proc/sys/kernel/tainted",
	"/proc/sys/vm/overcommit_ratio",
	"/proc/xenomai", /* a folder, if it is there: EISDIR */
	"/proc/xenomai/version",
	"/proc/ipipe/version",
	"/proc/rtai",
	"/sys/class/evl",
	"/proc/device-tree/model",
	"/sys/class/dmi/id/sys_vendor",
	"/sys/class/dmi/id/product_name",
	"/sys/hypervisor/type",
	"/sys/kernel/security/lockdown",
	"/sys/kernel/realtime",
	"/sys/kernel/debug/sched/preempt",
	"/sys/devices/system/cpu/isolated",
	"/sys/devices/system/cpu/nohz_full",
	"/sys/devices/system/cpu/online",
	"/sys/devices/system/cpu/smt/active",
	"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
	"/sys/devices/system/cpu/cpuidle/current_driver",
	"/sys/devices/system/clocksource/clocksource0/available_clocksource",
	NULL,
};

/* What may change while measuring is read at both ends. */
static const char *const files_at_both_ends[] = {
	"/proc/stat",
	"/proc/interrupts",
	"/proc/softirqs",
	"/proc/loadavg",
	"/proc/vmstat",
	"/proc/xenomai/stat", /* mode switches, version 2 and 3 */
	"/proc/xenomai/sched/stat",
	"/proc/sys/kernel/sched_rt_runtime_us",
	"/sys/devices/system/clocksource/clocksource0/current_clocksource",
	NULL,
};

static void write_files(struct run *run, enum moment moment, const char *const *paths)
{
	for (; *paths; paths++)
		record_file(&run->record, run_time_ns(run), moment, *paths);
}

/* A fact of the whole run. */
static void fact(struct run *run, enum moment moment, const char *key, const char *value)
{
	record_fact(&run->record, run_time_ns(run), WHOLE_RUN, moment, key, "%s", value);
}

static void fact_number(struct run *run, int thread, enum moment moment, const char *key, int64_t value)
{
	record_fact(&run->record, run_time_ns(run), thread, moment, key, "%lld", (long long)value);
}

static void fact_error(struct run *run, enum moment moment, const char *key, int err)
{
	record_fact(&run->record, run_time_ns(run), WHOLE_RUN, moment, key, "unavailable: %s", strerror(-err));
}

static void write_begin(struct run *run)
{
	struct bytes *chunk = chunk_begin(&run->record, CHUNK_BEGIN);
	struct utsname name;
	uint8_t id[16] = { 0 };

	memset(&name, 0, sizeof(name));
	uname(&name);
	/* Without a source of randomness two runs can still be told apart by their times. */
	text_read_file("/dev/urandom", (char *)id, sizeof(id));
	put_u16(chunk, RECORD_MAJOR);
	put_u16(chunk, RECORD_MINOR);
	put_bytes(chunk, id, sizeof(id));
	put_i64(chunk, clock_wall_ns() + run->origin_ns - clock_now_ns());
	put_i64(chunk, run->origin_ns);
	put_string(chunk, AGENT_VERSION);
	put_string(chunk, name.machine);
	put_string(chunk, name.release);
	put_string(chunk, name.version);
	chunk_end(&run->record);
}

static void write_series(struct run *run)
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

static void add_counter(struct run *run, bool grows, const char *unit, struct running_load *load, const char *path,
			const char *name)
{
	if (run->n_counters == COUNTERS_MOST)
		return;

	struct counter *counter = &run->counters[run->n_counters];
	struct bytes *chunk = chunk_begin(&run->record, CHUNK_COUNTER);

	snprintf(counter->name, sizeof(counter->name), "%s", name);
	snprintf(counter->path, sizeof(counter->path), "%s", path);
	counter->load = load;
	put_u16(chunk, (uint16_t)run->n_counters++);
	put_u8(chunk, !grows);
	put_u8(chunk, 0);
	put_string(chunk, counter->name);
	put_string(chunk, unit);
	chunk_end(&run->record);
}

/* A number in one file for each i: before, i, after. */
static void add_gauges(struct run *run, const char *name, const char *unit, const char *before, const char *after,
		       int most)
{
	for (int i = 0; i < most; i++) {
		char path[128], numbered[64], line[64];

		snprintf(path, sizeof(path), "%s%d%s", before, i, after);
		snprintf(numbered, sizeof(numbered), "%s%d", name, i);
		if (text_read_line(path, line, sizeof(line)) >= 0)
			add_counter(run, false, unit, NULL, path, numbered);
	}
}

static void fact_of_load(struct run *run, const char *name, const struct load_order *order)
{
	char key[80];

	snprintf(key, sizeof(key), "%s.note", name);
	if (order->note)
		fact(run, MOMENT_START, key, order->note);
	snprintf(key, sizeof(key), "%s.rest_ns", name);
	if (order->rest_ns)
		fact_number(run, WHOLE_RUN, MOMENT_START, key, order->rest_ns);
}

static void write_counters(struct run *run)
{
	char present[64];

	for (int i = 0; i < run->config->n_loads; i++) {
		struct running_load *load = &run->config->loads[i];
		char name[64];
		int before = 0;

		for (int j = 0; j < i; j++)
			before += !strcmp(run->config->loads[j].name, load->name);
		/* The same load twice is two counters. */
		snprintf(name, sizeof(name), "load.%s", load->name);
		if (before)
			snprintf(name, sizeof(name), "load.%s.%d", load->name, before + 1);
		add_counter(run, true, load_unit(load), load, "", name);
		fact_of_load(run, name, &load->order);
	}
	add_gauges(run, "temperature.", "millidegree", "/sys/class/thermal/thermal_zone", "/temp", 32);
	int before = run->n_counters;

	add_gauges(run, "frequency.cpu", "kHz", "/sys/devices/system/cpu/cpu", "/cpufreq/scaling_cur_freq", 256);
	if (text_read_line("/sys/devices/system/cpu/present", present, sizeof(present)) < 0)
		snprintf(present, sizeof(present), "unknown");
	record_fact(&run->record, run_time_ns(run), WHOLE_RUN, MOMENT_START, "frequency_gauges", "%d, CPUs present %s",
		    run->n_counters - before, present);
}

static void asked(struct run *run)
{
	const struct config *config = run->config;
	char text[CPUS_TEXT];
	size_t used = 0;
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
	cpus_format(&config->cpus, text, sizeof(text));
	fact(run, MOMENT_ASKED, "cpus", text);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		fact_number(run, WHOLE_RUN, MOMENT_ASKED, numbers[i].key, numbers[i].value);
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
	if (!config->trace)
		return;
	fact(run, MOMENT_ASKED, "trace", config->trace);
	fact_number(run, WHOLE_RUN, MOMENT_ASKED, "trace_blocks_ns", config->trace_blocks_ns);
	fact_number(run, WHOLE_RUN, MOMENT_ASKED, "trace_seed", run->trace.seed);
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

static void write_system(struct run *run)
{
	for (int i = 0; i < SYSTEM_PARTS; i++) {
		const struct system_part *part = &run->system[i];

		record_content(&run->record, run_time_ns(run), MOMENT_START, part->path, part->err,
			       (const char *)part->content.data, part->content.length);
	}
}

void facts_at_start(struct run *run)
{
	write_begin(run);
	write_series(run);
	asked(run);
	write_counters(run);
	if (getenv("RTPROOF_VIRTUAL_TIME"))
		fact(run, MOMENT_START, "virtual_time", getenv("RTPROOF_VIRTUAL_TIME"));
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
	write_system(run);
	write_files(run, MOMENT_START, files_at_start);
	write_files(run, MOMENT_START, files_at_both_ends);
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

static int64_t read_counter(const struct counter *counter)
{
	char line[64];

	if (counter->load)
		return load_work(counter->load);
	return text_read_line(counter->path, line, sizeof(line)) < 0 ? -1 : strtoll(line, NULL, 10);
}

static void write_tick(struct run *run)
{
	if (!run->n_counters)
		return;

	struct bytes *chunk = chunk_begin(&run->record, CHUNK_TICK);

	put_i64(chunk, run_time_ns(run));
	put_u16(chunk, (uint16_t)run->n_counters);
	for (int i = 0; i < run->n_counters; i++) {
		put_u16(chunk, (uint16_t)i);
		put_i64(chunk, read_counter(&run->counters[i]));
	}
	chunk_end(&run->record);
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

/* Asked of the kernel from outside the thread: another process may have changed it. Written when first seen and when it changes. */
static void check_thread(struct run *run, struct worker *worker)
{
	int task = worker_task(worker), policy = sys_get_policy(task), priority = sys_get_priority(task);

	/* A thread that makes another the measured one steps back itself; one that ends is nobody any more. */
	if (policy < 0 || priority < 0 || task != worker_task(worker) || word_load(&worker->done))
		return;
	policy &= ~RESET_ON_FORK;
	if (worker->seen && policy == worker->seen_policy && priority == worker->seen_priority)
		return;
	if (policy != (int)worker->policy || priority != worker->priority)
		record_event(&run->record, run_time_ns(run), worker->number, "policy_changed", policy_name(policy));
	record_fact(&run->record, run_time_ns(run), worker->number, MOMENT_DURING, "policy", "%s", policy_name(policy));
	fact_number(run, worker->number, MOMENT_DURING, "priority", priority);
	worker->seen = true;
	worker->seen_policy = policy;
	worker->seen_priority = priority;
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
	write_tick(run);
	write_kernel_lines(run);
	for (int i = 0; i < run->config->threads; i++)
		check_thread(run, &run->workers[i]);
}

static void facts_of_thread(struct run *run, int thread, enum moment moment, const struct evidence *evidence)
{
	char text[CPUS_TEXT];

	record_fact(&run->record, run_time_ns(run), thread, moment, "policy", "%s", policy_name(evidence->policy));
	fact_number(run, thread, moment, "priority", evidence->priority);
	fact_number(run, thread, moment, "cpu", evidence->cpu);
	if (evidence->timer_slack_ns < 0)
		record_fact(&run->record, run_time_ns(run), thread, moment, "timer_slack_ns",
			    "unavailable: no timer of this thread is measured");
	else
		fact_number(run, thread, moment, "timer_slack_ns", evidence->timer_slack_ns);
	cpus_format(&evidence->affinity, text, sizeof(text));
	record_fact(&run->record, run_time_ns(run), thread, moment, "affinity", "%s", text);
}

static void facts_of_loop(struct run *run, int thread, const struct evidence *before, const struct evidence *after)
{
	const enum moment end = MOMENT_END;

	fact_number(run, thread, end, "minor_faults", after->minor_faults - before->minor_faults);
	fact_number(run, thread, end, "major_faults", after->major_faults - before->major_faults);
	fact_number(run, thread, end, "voluntary_switches", after->voluntary_switches - before->voluntary_switches);
	fact_number(run, thread, end, "involuntary_switches", after->involuntary_switches - before->involuntary_switches);
	fact_number(run, thread, end, "cpu_time_ns", after->cpu_time_ns - before->cpu_time_ns);
	if (after->migrations < 0)
		record_fact(&run->record, run_time_ns(run), thread, end, "migrations",
			    "unavailable: the kernel does not tell");
	else
		fact_number(run, thread, end, "migrations", after->migrations - before->migrations);
}

void facts_at_end(struct run *run)
{
	for (int i = 0; i < run->config->threads; i++) {
		const struct worker *worker = &run->workers[i];

		if (!word_load(&worker->done))
			continue; /* stalled: it said nothing */
		facts_of_thread(run, i, MOMENT_START, &worker->start);
		facts_of_thread(run, i, MOMENT_END, &worker->end);
		facts_of_loop(run, i, &worker->before, &worker->end);
		fact_number(run, i, MOMENT_START, "warmup_activations", worker->warmup_activations);
		for (int file = 0; file < worker->n_files; file++)
			record_content(&run->record, run_time_ns(run), MOMENT_END, worker->files[file].path, 0,
				       worker->files[file].content, worker->files[file].length);
	}
	write_files(run, MOMENT_END, files_at_both_ends);
}

void facts_finish(struct run *run)
{
	struct bytes *chunk = chunk_begin(&run->record, CHUNK_END);

	put_i64(chunk, run_time_ns(run));
	put_u8(chunk, (uint8_t)run->reason);
	put_string(chunk, run->reason_text);
	put_u16(chunk, (uint16_t)(run->config->threads * run->config->fields));
	for (int i = 0; i < run->config->threads * run->config->fields; i++) {
		put_u16(chunk, run->captures[i].series);
		put_number(chunk, run->captures[i].obtained, 8);
		put_number(chunk, run->captures[i].missed, 8);
		put_number(chunk, run->captures[i].lost, 8);
	}
	chunk_end(&run->record);
}
