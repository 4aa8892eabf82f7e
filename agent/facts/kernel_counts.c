/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "facts/kernel_counts.h"

#include "system/smi.h"
#include "system/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTS_MOST = 1024, CPUS_TABLED = 8, COLUMNS_MOST = 1024, TEXT_LEAST = 16 * 1024, TEXT_MOST = 1024 * 1024 };

struct kernel_count {
	char name[48];
	uint16_t id;
	int64_t value;
	bool news; /* it is not what the record has */
};

struct kernel_counts {
	struct run *run;
	struct kernel_count all[COUNTS_MOST];
	int n, at; /* where the next one is looked for first: they come in the same order each time */
	int first_id;
	int cpus[SMI_CPUS], n_cpus, cpus_most;
	bool everything; /* else only what tells that the machine was gone */
	struct smi_counts smi;
	char *text;
	size_t room;
};

static void watch_cpu(struct kernel_counts *counts, int cpu)
{
	for (int i = 0; i < counts->n_cpus; i++)
		if (counts->cpus[i] == cpu)
			return;
	if (counts->n_cpus < counts->cpus_most)
		counts->cpus[counts->n_cpus++] = cpu;
}

static bool is_watched(const struct kernel_counts *counts, int cpu)
{
	for (int i = 0; i < counts->n_cpus; i++)
		if (counts->cpus[i] == cpu)
			return true;
	return false;
}

/* Those that the measuring threads are bound to; for a thread that is bound to none the first ones that there are. */
static void watch_cpus(struct kernel_counts *counts)
{
	const struct run *run = counts->run;
	long there = sysconf(_SC_NPROCESSORS_CONF);

	for (int i = 0; i < run->config->threads; i++) {
		if (run->workers[i].cpu >= 0)
			watch_cpu(counts, run->workers[i].cpu);
		for (int cpu = 0; run->workers[i].cpu < 0 && cpu < counts->cpus_most && cpu < there; cpu++)
			watch_cpu(counts, cpu);
	}
}

static void open_smi(struct kernel_counts *counts)
{
	char why[160];
	int err = smi_open(&counts->smi, "/dev/cpu", "/proc/cpuinfo", counts->cpus, counts->n_cpus, why, sizeof(why));

	if (err)
		run_fact(counts->run, WHOLE_RUN, MOMENT_START, "smi_count", "unavailable: %s", why);
	else
		run_fact(counts->run, WHOLE_RUN, MOMENT_START, "smi_count", "read once a second");
}

struct kernel_counts *kernel_counts_open(struct run *run, int first_id, bool everything)
{
	struct kernel_counts *counts = calloc(1, sizeof(*counts));

	if (!counts)
		return NULL;
	counts->run = run;
	counts->first_id = first_id;
	counts->everything = everything;
	counts->cpus_most = everything ? CPUS_TABLED : SMI_CPUS;
	counts->room = TEXT_LEAST;
	counts->text = malloc(counts->room);
	watch_cpus(counts);
	open_smi(counts);
	return counts;
}

void kernel_counts_close(struct kernel_counts *counts)
{
	if (counts) {
		smi_close(&counts->smi);
		free(counts->text);
	}
	free(counts);
}

/* The whole file as a string; NULL if it can't be read, or is larger than anybody has seen. */
static char *read_text(struct kernel_counts *counts, const char *path)
{
	for (;;) {
		int n = counts->text ? text_read_file(path, counts->text, counts->room - 1) : -1;

		if (n < 0)
			return NULL;
		counts->text[n] = '\0';
		if ((size_t)n < counts->room - 1)
			return counts->text;
		char *larger = counts->room < TEXT_MOST ? realloc(counts->text, 2 * counts->room) : NULL;

		if (!larger)
			return NULL;
		counts->text = larger;
		counts->room *= 2;
	}
}

static struct kernel_count *find(struct kernel_counts *counts, const char *name)
{
	for (int i = 0; i < counts->n; i++) {
		struct kernel_count *count = &counts->all[(counts->at + i) % counts->n];

		if (strcmp(count->name, name))
			continue;
		counts->at = (int)(count - counts->all) + 1;
		return count;
	}
	return NULL;
}

static struct kernel_count *announce(struct kernel_counts *counts, const char *name, const char *unit)
{
	if (counts->n == COUNTS_MOST)
		return NULL;
	struct kernel_count *count = &counts->all[counts->n];
	struct bytes *chunk = chunk_begin(&counts->run->record, CHUNK_COUNTER);

	snprintf(count->name, sizeof(count->name), "%s", name);
	count->id = (uint16_t)(counts->first_id + counts->n++);
	count->value = -1;
	put_u16(chunk, count->id);
	put_u8(chunk, 0); /* it only grows */
	put_u8(chunk, 0);
	put_string(chunk, count->name);
	put_string(chunk, unit);
	chunk_end(&counts->run->record);
	return count;
}

static void see(struct kernel_counts *counts, const char *name, const char *unit, int64_t value)
{
	struct kernel_count *count = find(counts, name);

	if (!count)
		count = announce(counts, name, unit);
	if (!count || count->value == value)
		return;
	count->value = value;
	count->news = true;
}

/* The numbers of the CPUs of the columns, from the first line; how many. */
static int read_columns(const char *text, int16_t *columns)
{
	const char *end = strchr(text, '\n'), *at = text;
	int n = 0;

	while (end && n < COLUMNS_MOST && (at = strstr(at, "CPU")) && at < end) {
		at += 3;
		columns[n++] = (int16_t)strtol(at, NULL, 10);
	}
	return n;
}

/* Lines of a label, a colon and a number for each CPU. */
static void see_table(struct kernel_counts *counts, const char *path, const char *kind, const char *unit)
{
	char *text = read_text(counts, path), *rest = NULL, name[48];
	int16_t columns[COLUMNS_MOST];
	int n = text ? read_columns(text, columns) : 0;

	for (char *line = n ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
		char *colon = strchr(line, ':'), *at = colon;

		while (isspace((unsigned char)*line))
			line++;
		if (!colon)
			continue;
		*colon = '\0';
		at++;
		for (int i = 0; i < n; i++) {
			char *end;
			long long value = strtoll(at, &end, 10);

			if (end == at)
				break;
			at = end;
			if (!is_watched(counts, columns[i]))
				continue;
			snprintf(name, sizeof(name), "%s.%.24s.cpu%d", kind, line, columns[i]);
			see(counts, name, unit, value);
		}
	}
}

/* The number of a place in a line, from 1 on; -1: there is none. */
static int64_t nth_number(const char *at, int n)
{
	char *end = NULL;
	int64_t value = -1;

	for (int i = 0; i < n; i++) {
		value = strtoll(at, &end, 10);
		if (end == at)
			return -1;
		at = end;
	}
	return value;
}

static void see_stolen(struct kernel_counts *counts)
{
	const char *text = read_text(counts, "/proc/stat");
	char name[48], line[16];

	for (int i = 0; text && i < counts->n_cpus; i++) {
		snprintf(line, sizeof(line), "\ncpu%d ", counts->cpus[i]);
		const char *at = strstr(text, line);
		int64_t value = at ? nth_number(at + strlen(line), 8) : -1;

		snprintf(name, sizeof(name), "steal.cpu%d", counts->cpus[i]);
		if (value >= 0)
			see(counts, name, "1/100 s", value);
	}
}

static void see_smi(struct kernel_counts *counts)
{
	char name[48];

	for (int i = 0; i < counts->smi.n; i++) {
		int64_t value = smi_read(&counts->smi, i);

		snprintf(name, sizeof(name), "smi.cpu%d", counts->cpus[i]);
		if (value >= 0)
			see(counts, name, "SMIs", value);
	}
}

static void see_pressure(struct kernel_counts *counts)
{
	static const char *const kinds[] = { "cpu", "io", "memory" };
	char path[32], name[24];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		snprintf(path, sizeof(path), "/proc/pressure/%s", kinds[i]);
		snprintf(name, sizeof(name), "pressure.%s", kinds[i]);
		const char *text = read_text(counts, path), *total = text ? strstr(text, "total=") : NULL;

		if (total)
			see(counts, name, "us", nth_number(total + 6, 1));
	}
}

/* Behind the name and the state of a thread, which are no numbers, its faults are number 7 and 9. */
static void see_faults(struct kernel_counts *counts)
{
	char path[64], name[48];

	for (int i = 0; i < counts->run->config->threads; i++) {
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", counts->run->workers[i].tid);
		const char *text = read_text(counts, path), *at = text ? strrchr(text, ')') : NULL;

		if (!at || strlen(at) < 4)
			continue;
		snprintf(name, sizeof(name), "minor_faults.thread%d", i);
		see(counts, name, "faults", nth_number(at + 3, 7));
		snprintf(name, sizeof(name), "major_faults.thread%d", i);
		see(counts, name, "faults", nth_number(at + 3, 9));
	}
}

static void see_throttled(struct kernel_counts *counts)
{
	char path[96], name[48], line[32];

	for (int i = 0; i < counts->n_cpus; i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", counts->cpus[i]);
		snprintf(name, sizeof(name), "throttled.cpu%d", counts->cpus[i]);
		if (text_read_line(path, line, sizeof(line)) >= 0)
			see(counts, name, "times", strtoll(line, NULL, 10));
	}
}

void kernel_counts_look(struct kernel_counts *counts)
{
	see_stolen(counts);
	see_smi(counts);
	if (!counts->everything)
		return;
	see_table(counts, "/proc/interrupts", "interrupts", "interrupts");
	see_table(counts, "/proc/softirqs", "softirqs", "softirqs");
	see_pressure(counts);
	see_faults(counts);
	see_throttled(counts);
}

int kernel_counts_put(struct kernel_counts *counts, struct bytes *chunk)
{
	int n = 0;

	for (int i = 0; i < counts->n; i++) {
		struct kernel_count *count = &counts->all[i];

		if (!count->news)
			continue;
		put_u16(chunk, count->id);
		put_i64(chunk, count->value);
		count->news = false;
		n++;
	}
	return n;
}
