/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "run.h"
#include "text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A part of a file is a chunk. It fits into the reserve behind the end of the record, and holds whole pages of any buffer. */
enum { PART = 64 * 1024, FORMATS_MOST = 16 * PART };

static int fill(int fd, char *part)
{
	ssize_t n = 1;
	int length = 0;

	while (length < PART && n > 0) { /* a trace is handed out in pieces, its raw pages one by one */
		n = read(fd, part + length, (size_t)(PART - length));
		length += n > 0 ? (int)n : 0;
	}
	return length;
}

/* The content of a file in parts under one name, up to a size. */
static void keep(struct run *run, const char *folder, const char *file, const char *name, int64_t most)
{
	char path[TRACEFS_PATH + 128], kept[128], *part = malloc(PART);
	int length;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	snprintf(kept, sizeof(kept), "trace/%s", name);
	int fd = part ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;

	while (fd >= 0 && most > 0 && !run->record.no_space && (length = fill(fd, part)) > 0) {
		record_content(&run->record, run_time_ns(run), MOMENT_END, kept, 0, part, (size_t)length);
		most -= length;
	}
	if (fd >= 0)
		close(fd);
	free(part);
}

static void keep_cpus(struct run *run)
{
	const struct trace *trace = &run->trace;
	char file[64], name[64];

	for (int cpu = 0; cpu < CPUS_MOST; cpu++) {
		char path[TRACEFS_PATH + 64];

		snprintf(path, sizeof(path), "%s/per_cpu/cpu%d", trace->place, cpu);
		if (access(path, F_OK) < 0)
			return;
		snprintf(file, sizeof(file), "per_cpu/cpu%d/stats", cpu);
		snprintf(name, sizeof(name), "cpu%d/stats", cpu);
		keep(run, trace->place, file, name, PART);
		snprintf(file, sizeof(file), "per_cpu/cpu%d/trace_pipe_raw", cpu);
		snprintf(name, sizeof(name), "cpu%d/raw", cpu);
		keep(run, trace->place, file, name, 2 * trace->buffer_kib * 1024);
	}
}

static void keep_formats(struct run *run)
{
	const struct trace *trace = &run->trace;
	char file[128];

	keep(run, trace->root, "events/header_page", "header_page", PART);
	keep(run, trace->root, "events/header_event", "header_event", PART);
	keep(run, trace->root, "events/ftrace/print/format", "events/ftrace/print/format", PART);
	for (int i = 0; i < trace->n_events; i++) {
		snprintf(file, sizeof(file), "events/%s/format", trace->events[i]);
		keep(run, trace->root, file, file, PART);
	}
	keep(run, trace->root, "saved_cmdlines", "saved_cmdlines", FORMATS_MOST);
	keep(run, trace->root, "printk_formats", "printk_formats", FORMATS_MOST);
	keep(run, trace->place, "trace_clock", "trace_clock", PART);
}

/* What a reader of the raw pages must know, and what was asked and is not there. */
static void tell(struct run *run)
{
	const struct trace *trace = &run->trace;
	const uint16_t one = 1;
	char text[1024];
	int length = snprintf(text, sizeof(text), "endian %s\nbuffer_kib %lld\nplace %s\nmissing%s\n",
			      *(const char *)&one ? "little" : "big", (long long)trace->buffer_kib,
			      trace->own ? "instance" : "top", trace->missing);

	record_content(&run->record, run_time_ns(run), MOMENT_END, "trace/about", 0, text, (size_t)length);
}

/* The text first: reading the raw pages takes them out of the buffer. */
void trace_keep(struct run *run)
{
	const struct trace *trace = &run->trace;

	if (!run->config->trace)
		return;
	tell(run);
	keep_formats(run);
	keep(run, trace->place, "trace", "text", TRACE_TEXT_FACTOR * trace->buffer_kib * 1024 * trace->cpus);
	keep_cpus(run);
}
