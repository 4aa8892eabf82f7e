/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/setting.h"

#include "system/cpus.h"
#include "system/text.h"
#include "system/threads.h"

#include <dirent.h>
#include <fnmatch.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* PF_NO_SETAFFINITY of the kernel's threads of one CPU; then what linux/sockios.h and linux/ethtool.h have, which differ by their age. */
enum { KEPT_ON_ITS_CPU = 0x04000000, ASK_ETHTOOL = 0x8946, GET_COALESCE = 0x0e, SET_COALESCE = 0x0f };
enum { COALESCE_WORDS = 24, DEVICE = 16, FIELD = 16, PASSES = 20 };

/* A number of a thread and its start, behind the colon. Answers the thread, or -ESRCH if it has ended. */
static int thread_of(const char *name)
{
	struct process found;
	long long started;
	int tid;

	if (sscanf(name, "%*[a-z]:%d:%lld", &tid, &started) != 2 || tid <= 0)
		return -EINVAL;
	return processes_look(tid, &found) || found.started != started ? -ESRCH : tid;
}

static int read_policy(const char *name, char value[SETTING_MOST])
{
	int tid = thread_of(name), policy = tid < 0 ? tid : sys_get_policy(tid);

	if (policy < 0)
		return policy;
	snprintf(value, SETTING_MOST, "%s:%d", policy_name(policy & ~POLICY_RESET_ON_FORK), sys_get_priority(tid));
	return 0;
}

static int write_policy(const char *name, const char *value)
{
	static const enum policy policies[] = { POLICY_FIFO, POLICY_RR, POLICY_OTHER };
	int tid = thread_of(name), priority = 0, length = (int)strcspn(value, ":");
	int64_t number;

	if (tid < 0)
		return tid;
	if (value[length] && (text_number(value + length + 1, 0, 99, &number) || (priority = (int)number) < 0))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++)
		if (!strncmp(policy_name((int)policies[i]), value, (size_t)length) && !policy_name((int)policies[i])[length])
			return sys_set_policy(tid, (int)policies[i], priority);
	return -EINVAL;
}

static int read_cpus(const char *name, char value[SETTING_MOST])
{
	struct cpus cpus;
	int tid = thread_of(name), err = tid < 0 ? tid : cpus_get_affinity(tid, &cpus);

	if (!err)
		cpus_format(&cpus, value, SETTING_MOST);
	return err;
}

static int write_cpus(const char *name, const char *value)
{
	struct cpus cpus;
	int tid = thread_of(name), err = tid < 0 ? tid : cpus_parse(value, &cpus);

	return err ? err : cpus_set_affinity(tid, &cpus);
}

int setting_each_thread(const char *pattern, int (*take)(void *given, const struct process *thread), void *given)
{
	DIR *processes = opendir("/proc");
	int process, tid, err = processes ? 0 : -errno;

	while (!err && (process = processes_next_number(processes))) {
		char path[64], name[64];

		snprintf(path, sizeof(path), "/proc/%d/task", process);
		DIR *threads = process == getpid() ? NULL : opendir(path);

		while (!err && (tid = processes_next_number(threads))) {
			struct process found;

			snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", process, tid);
			if (!text_read_line(path, name, sizeof(name)) && !fnmatch(pattern, name, 0) && !processes_look(tid, &found))
				err = take(given, &found);
		}
		if (threads)
			closedir(threads);
	}
	if (processes)
		closedir(processes);
	return err;
}

bool setting_thread_is_kept(const char *name)
{
	struct taskstat stat;
	char path[64];
	int tid = thread_of(name);

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	return tid > 0 && !taskstat_read(path, &stat) && stat.flags & KEPT_ON_ITS_CPU;
}

struct born {
	long long ticks;
	char cpus[CPUS_TEXT];
	const char *wanted; /* NULL: none is changed */
	int found;
};

static int take_born(void *given, const struct process *thread)
{
	struct born *born = given;
	char name[64], present[SETTING_MOST];

	snprintf(name, sizeof(name), "cpus:%d:%lld", (int)thread->pid, (long long)thread->started);
	if (thread->started <= born->ticks || read_cpus(name, present) || strcmp(present, born->cpus))
		return 0;
	born->found++;
	if (born->wanted)
		(void)write_cpus(name, born->wanted); /* it may just have ended */
	return 0;
}

static int born_since(const char *name, const char *wanted, struct born *born)
{
	*born = (struct born){ .wanted = wanted };
	if (sscanf(name, "born:%lld:%1023s", &born->ticks, born->cpus) != 2)
		return -EINVAL;
	return setting_each_thread("*", take_born, born);
}

static int read_born(const char *name, char value[SETTING_MOST])
{
	struct born born;
	int err = born_since(name, NULL, &born);

	if (!err && !born.found)
		return -ENOENT;
	snprintf(value, SETTING_MOST, "%s", born.cpus);
	return err;
}

/* Until a pass finds none: one that was not reached yet may have started another meanwhile. */
static int write_born(const char *name, const char *value)
{
	struct born born = { .found = 1 };
	int err = 0;

	for (int pass = 0; !err && born.found && pass < PASSES; pass++)
		err = born_since(name, value, &born);
	return err;
}

/* Asks the driver for all fields, or gives it all. 0 or -errno. */
static int coalesce(const char *device, uint32_t fields[COALESCE_WORDS], uint32_t command)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	struct ifreq request = { .ifr_data = (void *)fields };

	if (fd < 0)
		return -errno;
	fields[0] = command;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	if (ioctl(fd, ASK_ETHTOOL, &request) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Where struct ethtool_coalesce has a field; 0: it has none of that name. */
static int place_of(const char *field)
{
	static const struct {
		const char *name;
		int place;
	} known[] = { { "rx-usecs", 1 }, { "tx-usecs", 5 }, { "adaptive-rx", 10 }, { "adaptive-tx", 11 } };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(known[i].name, field))
			return known[i].place;
	return 0;
}

/* The place of the field, or -errno. */
static int look_at_link(const char *name, uint32_t fields[COALESCE_WORDS], char device[DEVICE])
{
	char field[FIELD];
	int place = sscanf(name, "link:%15[^:]:%15s", device, field) == 2 ? place_of(field) : 0;
	int err = place ? coalesce(device, fields, GET_COALESCE) : -EINVAL;

	return err ? err : place;
}

static int read_coalescing(const char *name, char value[SETTING_MOST])
{
	uint32_t fields[COALESCE_WORDS] = { 0 };
	char device[DEVICE];
	int place = look_at_link(name, fields, device);

	if (place < 0)
		return place;
	snprintf(value, SETTING_MOST, "%u", (unsigned)fields[place]);
	return 0;
}

static int write_coalescing(const char *name, const char *value)
{
	uint32_t fields[COALESCE_WORDS] = { 0 };
	char device[DEVICE];
	int64_t number;
	int place = look_at_link(name, fields, device);

	if (place < 0 || text_number(value, 0, UINT32_MAX, &number))
		return place < 0 ? place : -EINVAL;
	fields[place] = (uint32_t)number;
	return coalesce(device, fields, SET_COALESCE);
}

static int read_path(const char *path, char value[SETTING_MOST])
{
	int err = text_read_line(path, value, SETTING_MOST);
	char *chosen = err ? NULL : strchr(value, '['), *end = chosen ? strchr(chosen, ']') : NULL;

	if (end) {
		*end = '\0';
		memmove(value, chosen + 1, (size_t)(end - chosen));
	}
	for (char *tab = strchr(value, '\t'); !err && tab; tab = strchr(tab, '\t'))
		*tab = ' ';
	for (size_t length = strlen(value); !err && length && value[length - 1] == ' '; length--)
		value[length - 1] = '\0';
	return err;
}

/* An empty value is a line without anything: writing nothing at all changes nothing. */
static int write_path(const char *path, const char *value)
{
	return text_write_file(path, *value ? value : "\n");
}

static const char controllers[] = "/sys/fs/cgroup/cgroup.subtree_control";

static int read_controller(const char *name, char value[SETTING_MOST])
{
	char list[SETTING_MOST];
	int err = text_read_line(controllers, list, sizeof(list));

	if (!err)
		snprintf(value, SETTING_MOST, "%s", text_has_word(list, strchr(name, ':') + 1) ? "on" : "off");
	return err;
}

static int write_controller(const char *name, const char *value)
{
	char change[64];

	snprintf(change, sizeof(change), "%c%.60s", strcmp(value, "on") ? '-' : '+', strchr(name, ':') + 1);
	return text_write_file(controllers, change);
}

struct kind {
	const char *prefix;
	int (*read)(const char *name, char value[SETTING_MOST]);
	int (*write)(const char *name, const char *value);
};

static const struct kind *kind_of(const char *name)
{
	static const struct kind kinds[] = {
		{ "/", read_path, write_path },       { "policy:", read_policy, write_policy }, { "cpus:", read_cpus, write_cpus },
		{ "born:", read_born, write_born },   { "link:", read_coalescing, write_coalescing },
		{ "controller:", read_controller, write_controller },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)))
			return &kinds[i];
	return NULL;
}

int setting_read(const char *name, char value[SETTING_MOST])
{
	const struct kind *kind = kind_of(name);

	value[0] = '\0';
	return kind ? kind->read(name, value) : -EINVAL;
}

int setting_write(const char *name, const char *value)
{
	const struct kind *kind = kind_of(name);

	return kind ? kind->write(name, value) : -EINVAL;
}
