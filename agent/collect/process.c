/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/process.h"

#include "collect/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMAPS_MOST = 8 * 1024 * 1024, NAME_MOST = 512 };

static int copy_file(struct bytes *text, int pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return put_file(text, path, PROBE_MOST);
}

int collect_process_status(struct bytes *text, int pid)
{
	return copy_file(text, pid, "status");
}

int collect_process_stat(struct bytes *text, int pid)
{
	return copy_file(text, pid, "stat");
}

int collect_process_limits(struct bytes *text, int pid)
{
	return copy_file(text, pid, "limits");
}

int collect_process_cgroup(struct bytes *text, int pid)
{
	return copy_file(text, pid, "cgroup");
}

int collect_process_numa_maps(struct bytes *text, int pid)
{
	return copy_file(text, pid, "numa_maps");
}

struct mapping {
	char name[NAME_MOST];
	long size_kb, rss_kb, locked_kb; /* -1: the kernel does not tell */
	bool flagged, locked;            /* flagged: the kernel tells whether it is locked */
};

static const char *kind_of(const char *name)
{
	if (!strcmp(name, "[heap]"))
		return "heap";
	if (!strncmp(name, "[stack", 6))
		return "stack";
	return *name && *name != '[' ? "file" : "anonymous";
}

/* The kernel's own pages in a process, which are never locked and never missing. */
static bool of_kernel(const char *name)
{
	static const char *const names[] = { "[vdso", "[vvar", "[vsyscall", "[vectors", "[sigpage", "[uprobes" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

static void put_mapping(struct bytes *text, const struct mapping *mapping)
{
	char locked[24] = "-";

	if (mapping->size_kb < 0 || of_kernel(mapping->name))
		return;
	/* "Locked" counts a page that others map too as a part of one; the flag is of the mapping. */
	if (mapping->flagged)
		snprintf(locked, sizeof(locked), "%ld", mapping->locked ? mapping->rss_kb : 0);
	else if (mapping->locked_kb >= 0)
		snprintf(locked, sizeof(locked), "%ld", mapping->locked_kb);
	put_format(text, "%s %s %ld %ld %s\n", *mapping->name ? mapping->name : "-", kind_of(mapping->name), mapping->size_kb,
		   mapping->rss_kb, locked);
}

/* "BEGIN-END RIGHTS OFFSET DEVICE INODE  NAME" begins a mapping; "KEY: VALUE" says more of it. */
static bool begins_mapping(const char *line)
{
	size_t digits = strspn(line, "0123456789abcdef");

	return digits && line[digits] == '-';
}

static void begin_mapping(struct mapping *mapping, const char *line)
{
	const char *name = line;

	for (int i = 0; i < 5; i++) { /* words before the name */
		name += strcspn(name, " ");
		name += strspn(name, " ");
	}
	memset(mapping, 0, sizeof(*mapping));
	snprintf(mapping->name, sizeof(mapping->name), "%s", name);
	mapping->size_kb = mapping->rss_kb = mapping->locked_kb = -1;
}

static void read_line(struct mapping *mapping, const char *line)
{
	if (!strncmp(line, "Size:", 5))
		mapping->size_kb = atol(line + 5);
	else if (!strncmp(line, "Rss:", 4))
		mapping->rss_kb = atol(line + 4);
	else if (!strncmp(line, "Locked:", 7))
		mapping->locked_kb = atol(line + 7);
	else if (!strncmp(line, "VmFlags:", 8)) {
		mapping->flagged = true;
		mapping->locked = strstr(line, " lo");
	}
}

int collect_process_maps(struct bytes *text, int pid)
{
	struct bytes all = { NULL, 0, 0, false };
	struct mapping mapping = { .size_kb = -1 };
	char path[64], *rest, *line;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	int err = put_file(&all, path, SMAPS_MOST);

	rest = (char *)all.data;
	while (err >= 0 && (line = next_line(&rest))) {
		if (begins_mapping(line)) {
			put_mapping(text, &mapping);
			begin_mapping(&mapping, line);
		} else {
			read_line(&mapping, line);
		}
	}
	if (err >= 0)
		put_mapping(text, &mapping);
	bytes_free(&all);
	return err;
}
