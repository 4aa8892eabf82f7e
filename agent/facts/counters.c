/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "facts/kinds.h"

#include "loads/common/keeper.h"
#include "system/processes.h"
#include "system/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RAW_CLOCK "clock.raw"

static void add_counter(struct facts *facts, bool grows, const char *unit, struct running_load *load, const char *path,
			const char *name)
{
	if (facts->n_counters == COUNTERS_MOST)
		return;

	struct counter *counter = &facts->counters[facts->n_counters];
	struct bytes *chunk = chunk_begin(&facts->run->record, CHUNK_COUNTER);

	snprintf(counter->name, sizeof(counter->name), "%s", name);
	snprintf(counter->path, sizeof(counter->path), "%s", path);
	counter->load = load;
	put_u16(chunk, (uint16_t)facts->n_counters++);
	put_u8(chunk, !grows);
	put_u8(chunk, 0);
	put_string(chunk, counter->name);
	put_string(chunk, unit);
	chunk_end(&facts->run->record);
}

/* A number in one file for each i: before, i, after. */
static void add_gauges(struct facts *facts, const char *name, const char *unit, const char *before, const char *after,
		       int most)
{
	for (int i = 0; i < most; i++) {
		char path[128], numbered[64], line[64];

		snprintf(path, sizeof(path), "%s%d%s", before, i, after);
		snprintf(numbered, sizeof(numbered), "%s%d", name, i);
		if (text_read_line(path, line, sizeof(line)) >= 0)
			add_counter(facts, false, unit, NULL, path, numbered);
	}
}

static void fact_of_load(struct run *run, const char *name, const struct running_load *load)
{
	const struct load_order *order = &load->order;
	char key[80], cpus[CPUS_TEXT];

	snprintf(key, sizeof(key), "%s.note", name);
	if (order->note)
		run_fact(run, WHOLE_RUN, MOMENT_START, key, "%s", order->note);
	snprintf(key, sizeof(key), "%s.lack", name);
	if (order->lack)
		run_fact(run, WHOLE_RUN, MOMENT_START, key, "%s", order->lack);
	snprintf(key, sizeof(key), "%s.rest_ns", name);
	if (order->rest_ns)
		run_fact_number(run, WHOLE_RUN, MOMENT_START, key, order->rest_ns);
	if (!load->bound)
		return;
	cpus_format(&load->cpus, cpus, sizeof(cpus));
	snprintf(key, sizeof(key), "%s.cpus", name);
	run_fact(run, WHOLE_RUN, MOMENT_START, key, "%s", cpus);
}

/* Whether a process may run on a CPU that its load is not bound to. One that has ended may not. */
static bool may_stray(pid_t process, const struct cpus *bound)
{
	struct cpus all = *bound, own;

	if (cpus_get_affinity(process, &own))
		return false;
	cpus_add_all(&all, &own);
	return memcmp(&all, bound, sizeof(all)) != 0;
}

/* Of a load that is bound to CPUs: how many of its processes may run on others, because they or somebody else changed it. */
static int count_strays(const struct running_load *load)
{
	struct processes found = { NULL, 0 };
	int strays = may_stray(load->pid, &load->cpus);

	if (processes_below(load->pid, INT_MAX, &found))
		return strays;
	for (int i = 0; i < found.count; i++)
		strays += may_stray(found.each[i].pid, &load->cpus);
	free(found.each);
	return strays;
}

/* What its processes have used of the CPUs so far, and at the end how many of its workers never counted anything. */
void facts_of_loads(struct facts *facts, enum moment moment)
{
	struct run *run = facts->run;

	for (int i = 0; i < facts->n_counters; i++) {
		const struct running_load *load = facts->counters[i].load;
		char key[80];

		if (!load)
			continue;
		int64_t ms = load->pid > 0 ? processes_cpu_ms(load->pid, !keeper_needed(load)) : -1;

		snprintf(key, sizeof(key), "%s.cpu_ms", facts->counters[i].name);
		if (ms >= 0)
			run_fact_number(run, WHOLE_RUN, moment, key, ms);
		snprintf(key, sizeof(key), "%s.strays", facts->counters[i].name);
		if (load->bound && load->pid > 0)
			run_fact_number(run, WHOLE_RUN, moment, key, count_strays(load));
		if (moment != MOMENT_END)
			continue;
		snprintf(key, sizeof(key), "%s.parts", facts->counters[i].name);
		run_fact_number(run, WHOLE_RUN, moment, key, load->slots);
		snprintf(key, sizeof(key), "%s.idle_parts", facts->counters[i].name);
		run_fact_number(run, WHOLE_RUN, moment, key, load_idle_parts(load));
	}
}

void facts_announce_counters(struct facts *facts)
{
	struct run *run = facts->run;
	char present[64];
	int64_t raw_ns;

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
		add_counter(facts, true, load_unit(load), load, "", name);
		fact_of_load(run, name, load);
	}
	if (clock_raw_ns(&raw_ns))
		add_counter(facts, false, "ns", NULL, "", RAW_CLOCK);
	add_gauges(facts, "temperature.", "millidegree", "/sys/class/thermal/thermal_zone", "/temp", 32);
	int before = facts->n_counters;

	add_gauges(facts, "frequency.cpu", "kHz", "/sys/devices/system/cpu/cpu", "/cpufreq/scaling_cur_freq", 256);
	if (text_read_line("/sys/devices/system/cpu/present", present, sizeof(present)) < 0)
		snprintf(present, sizeof(present), "unknown");
	run_fact(run, WHOLE_RUN, MOMENT_START, "frequency_gauges", "%d, CPUs present %s",
		 facts->n_counters - before, present);
}

/* False: there is nothing to be told now. */
static bool read_counter(const struct counter *counter, int64_t *value)
{
	char line[64];

	if (counter->load)
		*value = load_work(counter->load);
	else if (!*counter->path)
		return clock_raw_ns(value);
	else
		*value = text_read_line(counter->path, line, sizeof(line)) < 0 ? -1 : strtoll(line, NULL, 10);
	return true;
}

void facts_tick(struct facts *facts)
{
	struct run *run = facts->run;

	if (!facts->n_counters && !facts->kernel_counts)
		return;
	int64_t time_ns = run_time_ns(run);

	if (facts->kernel_counts)
		kernel_counts_look(facts->kernel_counts);

	struct bytes *chunk = chunk_begin(&run->record, CHUNK_TICK);
	size_t count_at;
	int n = 0;

	put_i64(chunk, time_ns);
	count_at = chunk->length;
	put_u16(chunk, 0);
	for (int i = 0; i < facts->n_counters; i++) {
		int64_t value;

		if (!read_counter(&facts->counters[i], &value))
			continue;
		put_u16(chunk, (uint16_t)i);
		put_i64(chunk, value);
		n++;
	}
	if (facts->kernel_counts)
		n += kernel_counts_put(facts->kernel_counts, chunk);
	if (!chunk->failed)
		set_number(chunk->data + count_at, (uint64_t)n, 2);
	chunk_end(&run->record);
}
