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

/* Whether children inherit the policy stays as it is. A deadline can't be restored, so it is not changed. */
static int policy(const char *name, const char *wanted, char value[SETTING_MOST])
{
	int tid = thread_of(name), present = tid < 0 ? tid : sys_get_policy(tid), length = wanted ? (int)strcspn(wanted, ":") : 0;
	int64_t priority = 0;

	if (present < 0 || !wanted) {
		snprintf(value, SETTING_MOST, "%s:%d", policy_name(present & ~POLICY_RESET_ON_FORK), present < 0 ? 0 : sys_get_priority(tid));
		return present < 0 ? present : 0;
	}
	if ((present & ~POLICY_RESET_ON_FORK) > POLICY_IDLE || (wanted[length] && text_number(wanted + length + 1, 0, 99, &priority)))
		return -EINVAL;
	for (int one = POLICY_OTHER; one <= POLICY_IDLE; one++)
		if (!strncmp(policy_name(one), wanted, (size_t)length) && !policy_name(one)[length])
			return sys_set_policy(tid, one | (present & POLICY_RESET_ON_FORK), (int)priority);
	return -EINVAL;
}

static int affinity(const char *name, const char *wanted, char value[SETTING_MOST])
{
	struct cpus cpus;
	int tid = thread_of(name), err = tid < 0 ? tid : wanted ? cpus_parse(wanted, &cpus) : cpus_get_affinity(tid, &cpus);

	if (err)
		return err;
	if (wanted)
		return cpus_set_affinity(tid, &cpus);
	cpus_format(&cpus, value, SETTING_MOST);
	return 0;
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
	if (thread->started <= born->ticks || affinity(name, NULL, present) || strcmp(present, born->cpus))
		return 0;
	born->found++;
	if (born->wanted)
		(void)affinity(name, born->wanted, present); /* the thread may just have ended */
	return 0;
}

/* Writes until a pass finds none: a thread that was not reached yet may have started another meanwhile. */
static int heirs(const char *name, const char *wanted, char value[SETTING_MOST])
{
	struct born born = { .wanted = wanted };
	int err = sscanf(name, "born:%lld:%1023s", &born.ticks, born.cpus) == 2 ? 0 : -EINVAL, passes = wanted ? PASSES : 1;

	do {
		born.found = 0;
		err = err ? err : setting_each_thread("*", take_born, &born);
	} while (!err && born.found && --passes > 0);
	snprintf(value, SETTING_MOST, "%s", born.cpus);
	return err || wanted || born.found ? err : -ENOENT;
}

/* Asks the driver for all fields, or gives it all. 0 or -errno. */
static int call_driver(const char *device, uint32_t fields[COALESCE_WORDS], uint32_t command)
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

static int coalescing(const char *name, const char *wanted, char value[SETTING_MOST])
{
	static const struct {
		const char *name;
		int place; /* in struct ethtool_coalesce */
	} known[] = { { "rx-usecs", 1 }, { "tx-usecs", 5 }, { "adaptive-rx", 10 }, { "adaptive-tx", 11 } };
	uint32_t fields[COALESCE_WORDS] = { 0 };
	char device[DEVICE] = "", field[FIELD] = "";
	size_t i = 0;
	int64_t number = 0;

	(void)sscanf(name, "link:%15[^:]:%15s", device, field);
	while (i < sizeof(known) / sizeof(*known) && strcmp(known[i].name, field) != 0)
		i++;
	if (i == sizeof(known) / sizeof(*known) || (wanted && text_number(wanted, 0, UINT32_MAX, &number)))
		return -EINVAL;
	int err = call_driver(device, fields, GET_COALESCE);

	snprintf(value, SETTING_MOST, "%u", (unsigned)fields[known[i].place]);
	fields[known[i].place] = (uint32_t)number;
	return err || !wanted ? err : call_driver(device, fields, SET_COALESCE);
}

/* An empty value is a line without anything: writing nothing at all changes nothing. */
static int file(const char *path, const char *wanted, char value[SETTING_MOST])
{
	const char *const marks = strncmp(path, "/sys/kernel/debug/sched/", 24) ? "[]" : "()"; /* of the present one among others */
	int err = wanted ? text_write_file(path, *wanted ? wanted : "\n") : text_read_line(path, value, SETTING_MOST);
	char *chosen = err || wanted ? NULL : strchr(value, marks[0]), *end = chosen ? strchr(chosen, marks[1]) : NULL;

	if (err || wanted)
		return err;
	if (end) {
		*end = '\0';
		memmove(value, chosen + 1, (size_t)(end - chosen));
	}
	for (char *tab = strchr(value, '\t'); tab; tab = strchr(tab, '\t'))
		*tab = ' ';
	for (size_t length = strlen(value); length && value[length - 1] == ' '; length--)
		value[length - 1] = '\0';
	return 0;
}

static int controller(const char *name, const char *wanted, char value[SETTING_MOST])
{
	static const char path[] = "/sys/fs/cgroup/cgroup.subtree_control";
	const char *controller_name = strchr(name, ':') + 1;
	char list[SETTING_MOST] = "", change[64];
	int err = wanted ? 0 : text_read_line(path, list, sizeof(list));

	snprintf(value, SETTING_MOST, "%s", text_has_word(list, controller_name) ? "on" : "off");
	snprintf(change, sizeof(change), "%c%.60s", wanted && strcmp(wanted, "on") ? '-' : '+', controller_name);
	return wanted ? text_write_file(path, change) : err;
}

/* wanted: NULL to read the value. 0 or -errno. */
static int use(const char *name, const char *wanted, char value[SETTING_MOST])
{
	static const struct {
		const char *prefix;
		int (*use)(const char *name, const char *wanted, char value[SETTING_MOST]);
	} kinds[] = {
		{ "/", file }, { "policy:", policy }, { "cpus:", affinity }, { "born:", heirs }, { "link:", coalescing }, { "controller:", controller },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)))
			return kinds[i].use(name, wanted, value);
	return -EINVAL;
}

int setting_read(const char *name, char value[SETTING_MOST])
{
	value[0] = '\0';
	return use(name, NULL, value);
}

int setting_write(const char *name, const char *value)
{
	char unused[SETTING_MOST];

	return use(name, value, unused);
}
