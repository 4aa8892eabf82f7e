/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "loads/common/group.h"

#include "system/clock.h"
#include "system/control_group.h"
#include "system/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { TEXT = 4096, REMOVAL_TRIES = 10000, PAUSE_NS = 1000000 };

static const char *name_of(char *name, const char *group, const char *file)
{
	snprintf(name, FOLDER_PATH + 32, "%s/%s", group, file);
	return name;
}

static int set(const char *group, const char *file, const char *value)
{
	char name[FOLDER_PATH + 32];

	return text_write_file(name_of(name, group, file), value);
}

static int set_number(const char *group, const char *file, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return set(group, file, text);
}

static bool hands_on(const char *group)
{
	char name[FOLDER_PATH + 32], controllers[TEXT];

	return text_read_line(name_of(name, group, "cgroup.subtree_control"), controllers, TEXT) == 0 &&
	       strstr(controllers, "memory") && strstr(controllers, "pids");
}

/* A group with processes in it can't hand on controllers, but one above it may. */
static int find_place(char *path)
{
	size_t root_length;
	int err = control_group_find(path, &root_length);

	if (err || strlen(path) >= FOLDER_PATH - 64)
		return err ? err : -ENAMETOOLONG;
	while (!hands_on(path)) {
		char *slash = strrchr(path, '/');

		if (slash < path + root_length)
			return -ENOENT;
		*slash = '\0';
	}
	return 0;
}

static int join(const char *group)
{
	return set(group, "cgroup.procs", "0");
}

static int try_to_join(const char *group)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(-join(group));
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

/* Each that is in the group, for kernels before 5.14. */
static void kill_each(const char *group)
{
	char name[FOLDER_PATH + 32], pids[TEXT], *rest = NULL;
	int n = text_read_file(name_of(name, group, "cgroup.procs"), pids, TEXT - 1);

	while (n > 0 && pids[n - 1] != '\n') /* a number that was cut is another's */
		n--;
	pids[n > 0 ? n : 0] = '\0';
	for (char *pid = strtok_r(pids, "\n", &rest); pid; pid = strtok_r(NULL, "\n", &rest))
		if (atoi(pid) > 1) /* 0 is of another PID namespace */
			kill(atoi(pid), SIGKILL);
}

/* Not every kernel has cgroup.kill (5.14), swap, or the choice to kill all instead of one. */
static void remove_group(const char *path)
{
	for (int i = 0; i < REMOVAL_TRIES && rmdir(path) < 0 && errno == EBUSY; i++) {
		if (set(path, "cgroup.kill", "1") < 0)
			kill_each(path);
		sys_sleep(CLOCK_MONOTONIC, 0, PAUSE_NS);
	}
}

static int make_group(char *path, const void *what)
{
	const struct group_limits *limits = what;
	char place[FOLDER_PATH];
	int err = find_place(path);

	if (err)
		return err;
	snprintf(place, sizeof(place), "%s", path);
	err = folder_make(path, place);
	if (err)
		return err;
	err = set_number(path, "memory.max", limits->bytes);
	if (!err)
		err = set_number(path, "pids.max", limits->processes);
	if (!err)
		err = try_to_join(path);
	set(path, "memory.swap.max", "0");
	set(path, "memory.oom.group", "1");
	if (err)
		remove_group(path);
	return err;
}

void group_sweep(void)
{
	char place[FOLDER_PATH];

	if (find_place(place) == 0)
		folder_sweep(place, remove_group);
}

int group_open(struct folder *group, const struct group_limits *limits)
{
	static const struct folder_kind kind = { make_group, remove_group };

	return folder_open_as(group, &kind, limits);
}

int group_join(const struct folder *group)
{
	return join(group->path);
}

/* A line of the file is a name and a number. */
static bool happened(const struct folder *group, const char *file, const char *what)
{
	char name[FOLDER_PATH + 32], text[TEXT];
	int n = text_read_file(name_of(name, group->path, file), text, TEXT - 1);

	text[n > 0 ? n : 0] = '\0';
	const char *line = strstr(text, what);

	return line && atoi(line + strlen(what)) > 0;
}

bool group_lacked_processes(const struct folder *group)
{
	return happened(group, "pids.events", "max ");
}

bool group_lacked_memory(const struct folder *group)
{
	return happened(group, "memory.events", "oom_kill ");
}
