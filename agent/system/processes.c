/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/processes.h"

#include "system/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* proc(5): a name in brackets, which may hold anything, and then numbers. */
static int read_process(const char *name, struct process *process)
{
	char path[64], text[1024];
	long long user, system, waited_user, waited_system, started, pages;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
	int length = text_read_file(path, text, sizeof(text) - 1); /* a name may have several lines */

	if (length < 0)
		return length;
	text[length] = '\0';
	const char *rest = strrchr(text, ')');

	if (!rest || sscanf(rest, ") %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld %*d %*d %*d %*d %lld %*u %lld",
			    &process->state, &process->parent, &process->session, &user, &system, &waited_user, &waited_system,
			    &started, &pages) != 9)
		return -EINVAL;
	process->pid = (pid_t)atoi(text);
	process->waited_ticks = waited_user + waited_system;
	process->cpu_ticks = user + system + process->waited_ticks;
	process->pages = pages;
	process->started = started;
	return 0;
}

int processes_self(struct process *self)
{
	return read_process("self", self);
}

int processes_look(pid_t pid, struct process *process)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", (int)pid);
	return read_process(name, process);
}

bool processes_live(pid_t pid, int64_t started)
{
	struct process found;

	if (processes_look(pid, &found) == 0)
		return found.started == started && found.state != 'Z' && found.state != 'X';
	return kill(pid, 0) == 0 || errno != ESRCH;
}

void boot_id(char id[BOOT_ID_ROOM])
{
	if (text_read_line("/proc/sys/kernel/random/boot_id", id, BOOT_ID_ROOM) || !id[0])
		snprintf(id, BOOT_ID_ROOM, "none");
}

/* Of the root's own, but not the root; who went to a session of its own is found by its parents, later. */
static bool is_near(const struct process *one, pid_t root)
{
	return one->pid != root && (one->parent == root || one->session == root);
}

/* All there are, or so many that more than `most` are of the root's. */
static int read_all(struct processes *all, pid_t root, int64_t most)
{
	DIR *folder = opendir("/proc");
	int room = 0, err = 0;
	int64_t near = 0;
	struct dirent *entry;

	if (!folder)
		return -errno;
	while (near <= most && (entry = readdir(folder))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		if (all->count == room) {
			struct process *more = realloc(all->each, (size_t)(room = 2 * room + 256) * sizeof(*more));

			if (!more) {
				err = -ENOMEM;
				break;
			}
			all->each = more;
		}
		if (read_process(entry->d_name, &all->each[all->count]) == 0) /* it may be gone by now */
			near += is_near(&all->each[all->count++], root);
	}
	closedir(folder);
	return err;
}

static bool belongs(const struct processes *found, pid_t root, const struct process *one)
{
	if (one->pid == root)
		return false;
	if (is_near(one, root))
		return true;
	for (int i = 0; i < found->count; i++)
		if (found->each[i].pid == one->parent)
			return true;
	return false;
}

/* Moves those that belong to the front, until a whole pass finds no more: a child may be listed before its parent. */
static void sift(struct processes *all, pid_t root)
{
	struct processes found = { all->each, 0 };
	int before = -1;

	while (before < found.count) {
		before = found.count;
		for (int i = found.count; i < all->count; i++) {
			struct process one = all->each[i];

			if (!belongs(&found, root, &one))
				continue;
			all->each[i] = all->each[found.count];
			all->each[found.count++] = one;
		}
	}
	all->count = found.count;
}

int processes_below(pid_t root, int64_t most, struct processes *found)
{
	memset(found, 0, sizeof(*found));
	int err = read_all(found, root, most);

	if (!err) {
		sift(found, root);
		return 0;
	}
	free(found->each);
	memset(found, 0, sizeof(*found));
	return err;
}

int64_t processes_cpu_ms(pid_t root, bool root_too)
{
	struct processes found;
	struct process self;
	char name[24];

	snprintf(name, sizeof(name), "%d", (int)root);
	int err = read_process(name, &self);

	if (!err)
		err = processes_below(root, INT_MAX, &found);
	if (err)
		return err;
	int64_t ticks = root_too ? self.cpu_ticks : self.waited_ticks;

	for (int i = 0; i < found.count; i++)
		ticks += found.each[i].cpu_ticks;
	free(found.each);
	return ticks * 1000 / sysconf(_SC_CLK_TCK);
}

int processes_kill(pid_t root)
{
	struct processes found;
	int err = processes_below(root, INT_MAX, &found), count = found.count;

	for (int i = 0; i < count; i++)
		kill(found.each[i].pid, SIGKILL);
	free(found.each);
	return err ? err : count;
}

/* Words behind the name, which may have anything in it, from 1: the field's number in proc(5) less two. */
enum { PARENT = 2, FLAGS = 7, MINOR = 8, MAJOR = 10, NICE = 17, CPU = 37, PRIORITY, POLICY };

enum { OF_KERNEL = 0x00200000 };

bool taskstat_parse(const char *text, struct taskstat *stat)
{
	const char *name = strchr(text, '('), *at = strrchr(text, ')');
	long words[POLICY + 1] = { 0 };
	int n = 0;

	if (!name || !at)
		return false;
	snprintf(stat->name, sizeof(stat->name), "%.*s", (int)(at - name - 1), name + 1);
	for (char *one = stat->name; *one; one++) /* a name stands in a line of its own */
		if (*one == '\n')
			*one = '?';
	while (n < POLICY && (at = strchr(at + 1, ' ')))
		words[++n] = (long)strtoul(at + 1, NULL, 10); /* flags may have the highest bit */
	stat->of_kernel = words[FLAGS] & OF_KERNEL;
	stat->parent = (int)words[PARENT];
	stat->flags = (uint32_t)words[FLAGS];
	stat->minor_faults = words[MINOR];
	stat->major_faults = words[MAJOR];
	stat->nice = (int)words[NICE];
	stat->cpu = (int)words[CPU];
	stat->priority = (int)words[PRIORITY];
	stat->policy = (int)words[POLICY];
	return n == POLICY;
}

int taskstat_read(const char *path, struct taskstat *stat)
{
	char text[1024];
	int length = text_read_file(path, text, sizeof(text) - 1);

	text[length < 0 ? 0 : length] = '\0';
	if (length >= 0 && !taskstat_parse(text, stat))
		return -EPROTO;
	return length < 0 ? length : 0;
}

int processes_next_number(void *folder)
{
	const struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (atoi(entry->d_name) > 0)
			return atoi(entry->d_name);
	return 0;
}

bool program_is_there(const char *name)
{
	char path[4096];
	const char *places = strchr(name, '/') ? "" : getenv("PATH");

	if (!*name)
		return false;
	if (!places || !*places)
		return access(name, X_OK) == 0;
	while (places) {
		int length = (int)strcspn(places, ":");

		snprintf(path, sizeof(path), "%.*s/%s", length, places, name);
		if (access(path, X_OK) == 0)
			return true;
		places = places[length] ? places + length + 1 : NULL;
	}
	return false;
}
