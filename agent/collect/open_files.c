/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/open_files.h"

#include "collect/lines.h"
#include "system/processes.h"
#include "system/text.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { FILES_MOST = 200000 };

/* The kernel's number of the PID namespace that has all processes. */
static const char first_namespace[] = "pid:[4026531836]";

/* Another namespace, or /proc mounted with hidepid, hides processes of others. Before Linux 3.8 no namespace has such a name. */
static bool sees_all(void)
{
	char target[64];
	ssize_t length = readlink("/proc/self/ns/pid", target, sizeof(target) - 1);

	if (length > 0) {
		target[length] = '\0';
		if (strcmp(target, first_namespace) != 0)
			return false;
	}
	return access("/proc/1/stat", F_OK) == 0;
}

/* How many of the open files of a process lead to the file; *left: how many more may be looked at. Or -errno. */
static int count_open(int process, const char *file, int *left)
{
	char path[320], target[64];
	const struct dirent *entry;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", process);
	DIR *folder = opendir(path);

	if (!folder)
		return -errno;
	while (*left > 0 && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", process, entry->d_name);
		ssize_t length = entry->d_name[0] == '.' ? -1 : readlink(path, target, sizeof(target) - 1);

		target[length < 0 ? 0 : length] = '\0';
		n += length >= 0 && !strcmp(target, file);
		--*left;
	}
	closedir(folder);
	return n;
}

static void put_holder(struct bytes *text, int process, int n, bool counts)
{
	char path[64], name[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", process); /* since Linux 2.6.33 */
	if (text_read_line(path, name, sizeof(name)))
		snprintf(name, sizeof(name), "-");
	put_format(text, "%d %s", process, name);
	if (counts)
		put_format(text, " %d", n);
	put_u8(text, '\n');
}

int put_holders(struct bytes *text, const char *file, bool counts)
{
	DIR *processes = opendir("/proc");
	bool all = sees_all();
	int process, left = FILES_MOST;

	if (!processes)
		return -errno;
	while (left > 0 && (process = processes_next_number(processes))) {
		int n = count_open(process, file, &left);

		if (n > 0)
			put_holder(text, process, n, counts);
		else if (n == -EACCES || n == -EPERM)
			all = false;
	}
	closedir(processes);
	if (left <= 0)
		return TEXT_IS_CUT;
	return text->length || all ? 0 : -EACCES;
}
