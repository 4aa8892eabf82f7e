/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that read what the kernel makes up when it is asked: its symbols, and every process's state and memory map. */
#include "system/sys.h"

#include "loads/load.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

enum { READ_BYTES = 65536 };

static const struct load_option options[] = {
	{ "workers", "processes (default: one for each CPU)", 1, LOAD_SLOTS, LOAD_PER_CPU },
	{ NULL, NULL, 0, 0, 0 },
};

/* A file may be missing, secret, or gone with its process. */
static void read_all(const char *path, struct load_slot *slot)
{
	char text[READ_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	while (read(fd, text, sizeof(text)) > 0)
		slot->work++;
	close(fd);
}

static void read_process(const char *name, struct load_slot *slot)
{
	static const char *const files[] = { "stat", "status", "maps", "smaps" };
	char path[64];

	if (name[0] < '0' || name[0] > '9')
		return;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "/proc/%.20s/%s", name, files[i]);
		read_all(path, slot);
	}
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	static const char *const files[] = { "/proc/kallsyms", "/proc/stat", "/proc/interrupts", "/proc/vmallocinfo",
					     "/proc/slabinfo", "/proc/timer_list", "/proc/zoneinfo", "/proc/net/unix" };
	struct dirent *entry;

	(void)order;
	for (;;) {
		DIR *folder = opendir("/proc");

		if (!folder)
			return -errno;
		for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
			read_all(files[i], slot);
		while ((entry = readdir(folder)))
			read_process(entry->d_name, slot);
		closedir(folder);
	}
}

const struct load load_proc = {
	.name = "proc",
	.help = "files of /proc read: symbols, states and memory maps of all processes",
	.unit = "reads",
	.options = options,
	.work = work,
};
