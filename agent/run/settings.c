/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "run/settings.h"

#include "system/control_group.h"
#include "system/cpus.h"
#include "system/text.h"

#include <glob.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 256, COUNTS = 160, HEIRS_CPUS = 200 };

struct applied {
	char name[NAME], before[SETTING_MOST], asked[SETTING_MOST], shown[SETTING_MOST];
	char counts[COUNTS]; /* what became of all that the name stands for; before and shown are of the last of them */
};

/* NAME=VALUE at its last "=" that has a name before it: no name has one, but a value may. */
static int split(const char *text, char name[NAME], const char **value)
{
	size_t length = strcspn(text, "=");

	if (!length || length >= NAME || strlen(text) - length >= SETTING_MOST)
		return -EINVAL;
	snprintf(name, NAME, "%.*s", (int)length, text);
	*value = text[length] ? text + length + 1 : NULL;
	return 0;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* The first that begins so decides, and has that value (NULL: any). */
static const struct {
	const char *begins, *value;
	bool may;
} rules[] = {
	/* This can't be undone, locks the machine, or lets it starve. */
	{ "/sys/devices/system/cpu/cpu0/online", NULL, false },
	{ "/sys/devices/system/cpu/smt/control", "forceoff", false },
	{ "/sys/kernel/mm/ksm/run", "2", false },
	{ "/proc/sys/vm/drop_caches", NULL, false },
	{ "/proc/sys/vm/compact_memory", NULL, false },
	{ "/proc/sys/kernel/sysrq", NULL, false },
	{ "/proc/sys/kernel/modules_disabled", NULL, false },
	{ "/proc/sys/kernel/kexec_load_disabled", NULL, false },
	{ "/proc/sys/kernel/core_pattern", NULL, false },
	{ "/proc/sys/kernel/modprobe", NULL, false },
	{ "/proc/sys/fs/", NULL, false },
	/* All else in these folders. */
	{ "/proc/sys/", NULL, true },
	{ "/proc/irq/", NULL, true },
	{ "/sys/devices/system/", NULL, true },
	{ "/sys/devices/virtual/workqueue/", NULL, true },
	{ "/sys/kernel/mm/", NULL, true },
	{ "/sys/kernel/debug/sched/", NULL, true },
	{ "/sys/module/", NULL, true },
	{ "/sys/class/net/", NULL, true },
	{ "/sys/fs/cgroup/", NULL, true },
	{ "/sys/bus/", NULL, true },
};

/* otherwise: where no rule is about the path. */
static bool may_set(const char *path, const char *value, bool otherwise)
{
	if (strstr(path, "/../") || strpbrk(path, "\t\n"))
		return false;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (begins(path, rules[i].begins) && (!rules[i].value || !strcmp(rules[i].value, value)))
			return rules[i].may;
	return otherwise;
}

int settings_check(const char *text, char *why, size_t room)
{
	char name[NAME], pattern[NAME], what[8];
	const char *value, *path;

	if (split(text, name, &value) || (value && strpbrk(value, "\t\n")))
		return text_refuse(why, room, -EINVAL, "--set takes NAME=VALUE in one line, such as /proc/sys/vm/stat_interval=10; not '%s'", text);
	path = begins(name, "mkdir:") || begins(name, "join:") ? strchr(name, ':') + 1 : name;
	if (path != name && (value || !begins(path, "/sys/fs/cgroup/") || !may_set(path, "", false)))
		return text_refuse(why, room, -EINVAL, "--set %s: only a control group below /sys/fs/cgroup can be made, and it has no value", name);
	if (path == name && !value)
		return text_refuse(why, room, -EINVAL, "--set %s has no value", name);
	if (*name == '/' && !may_set(name, value, false))
		return text_refuse(why, room, -EINVAL, "--set %s=%s: rtproof does not set this", name, value);
	if (path != name || *name == '/' || begins(name, "link:") || begins(name, "controller:"))
		return 0;
	if (sscanf(name, "threads:%255[^:]:%7s", pattern, what) == 2 && (!strcmp(what, "policy") || !strcmp(what, "cpus")))
		return 0;
	return text_refuse(why, room, -EINVAL, "--set knows no '%s'", name);
}

/* Everything that one --set names, and what became of it. */
struct group {
	struct settings *settings;
	struct applied *one;
	char off_line[16]; /* the number of a CPU that it puts off line */
	int set, had, kept, refused, err; /* had: the value already; kept: by the kernel, on its CPU or at its value; err: the last one */
};

/* "@NAME": what a file beside this one says. */
static int value_for(const char *name, const char *asked, char value[SETTING_MOST])
{
	char path[NAME];

	if (*asked != '@') {
		snprintf(value, SETTING_MOST, "%s", asked);
		return 0;
	}
	if (snprintf(path, sizeof(path), "%.*s%s", (int)(strrchr(name, '/') - name + 1), name, asked + 1) >= NAME)
		return -ENAMETOOLONG;
	return setting_read(path, value);
}

/* Of two files that limit the same, such as dirty_bytes and dirty_ratio: the one not in use is 0, and 0 can't be written back. */
static bool its_twin_is_in_use(const char *name, const char *before)
{
	return begins(name, "/proc/sys/vm/dirty_") && (strstr(name, "_bytes") || strstr(name, "_ratio")) && !strcmp(before, "0");
}

/* Ends with the first result that is not 0. 0 or -errno. */
static int each_file(const char *pattern, int (*take)(struct group *group, const char *name), struct group *group)
{
	glob_t found;
	int err = glob(pattern, GLOB_NOSORT, NULL, &found) ? -ENOENT : 0;

	for (size_t i = 0; !err && i < found.gl_pathc; i++)
		err = take(group, found.gl_pathv[i]);
	if (err != -ENOENT)
		globfree(&found);
	return err;
}

/* What is only on a CPU that goes off line is moved elsewhere by the kernel, which does not move it back. */
static int note_if_alone(struct group *group, const char *name)
{
	char before[SETTING_MOST];

	return setting_read(name, before) || strcmp(before, group->off_line) ? 0 : undo_note(&group->settings->undo, name, before, UNDO_ANY);
}

static int note_thread(void *given, const struct process *thread)
{
	char name[NAME];

	snprintf(name, sizeof(name), "cpus:%d:%lld", (int)thread->pid, (long long)thread->started);
	return setting_thread_is_kept(name) ? 0 : note_if_alone(given, name);
}

static int note_moved(struct group *group, const char *name, const char *value)
{
	char end;

	if (sscanf(name, "/sys/devices/system/cpu/cpu%15[0-9]/onlin%c", group->off_line, &end) != 2 || strcmp(value, "0"))
		return 0;
	int err = each_file("/proc/irq/[0-9]*/smp_affinity_list", note_if_alone, group);

	return err && err != -ENOENT ? err : setting_each_thread("*", note_thread, group);
}

/* Nothing that can't be restored is set, so only what would spoil a journal ends it: a full disk, or another run's. */
static int set_one(struct group *group, const char *name)
{
	char value[SETTING_MOST], before[SETTING_MOST], shown[SETTING_MOST], real[PATH_MAX];
	struct applied *one = group->one;
	int err = value_for(name, one->asked, value);

	if (!err && begins(name, "cpus:") && setting_thread_is_kept(name)) {
		group->kept++;
		return 0;
	}
	/* A file has other names, too: with "//" in it, or by a link. */
	if (!err && *name == '/')
		err = !may_set(name, value, false) || (realpath(name, real) && !may_set(real, value, true)) ? -EPERM :
		      setting_read(name, before) ? 0 : its_twin_is_in_use(name, before) ? -EBUSY : 0;
	if (!err)
		err = note_moved(group, name, value);
	if (!err)
		err = undo_set(&group->settings->undo, name, value, before, shown);
	if (err == -ENOSPC || err == -ENOBUFS || err == -EROFS || err == -EALREADY)
		return err;
	if (err) {
		group->refused += err != -ESRCH;
		group->err = err != -ESRCH ? err : group->err;
		return 0;
	}
	group->had += !strcmp(before, value);
	group->kept += strcmp(before, value) && !strcmp(before, shown);
	group->set += strcmp(before, shown) != 0;
	snprintf(one->before, sizeof(one->before), "%s", before);
	snprintf(one->shown, sizeof(one->shown), "%s", shown);
	return 0;
}

static int set_thread(void *given, const struct process *thread)
{
	struct group *group = given;
	char name[NAME];

	snprintf(name, sizeof(name), "%s:%d:%lld", strrchr(group->one->name, ':') + 1, (int)thread->pid, (long long)thread->started);
	return set_one(group, name);
}

/* Threads that start from now on inherit the CPUs of those that were moved; they get those of the first process afterwards. */
static int note_heirs(struct settings *settings, const char *cpus)
{
	char name[NAME], before[SETTING_MOST];
	struct process first, self;
	struct cpus those;

	if (processes_look(1, &first) || processes_self(&self))
		return 0;
	snprintf(name, sizeof(name), "cpus:1:%lld", (long long)first.started);
	if (setting_read(name, before) || cpus_parse(cpus, &those))
		return 0;
	if (strlen(cpus) > HEIRS_CPUS)
		return -ENAMETOOLONG;
	snprintf(name, sizeof(name), "born:%lld:%.*s", (long long)self.started, HEIRS_CPUS, cpus);
	return undo_note(&settings->undo, name, before, cpus);
}

static int set_threads(struct group *group)
{
	char pattern[NAME], what[8];
	int err = sscanf(group->one->name, "threads:%255[^:]:%7s", pattern, what) == 2 ? 0 : -EINVAL;

	if (!err && !strcmp(what, "cpus"))
		err = note_heirs(group->settings, group->one->asked);
	return err ? err : setting_each_thread(pattern, set_thread, group);
}

/* Of every network device, or of one. */
static int set_links(struct group *group)
{
	struct if_nameindex *devices = strncmp(group->one->name, "link:*:", 7) ? NULL : if_nameindex();
	int err = devices ? 0 : set_one(group, group->one->name);

	for (struct if_nameindex *device = devices; !err && device && device->if_index; device++) {
		char name[NAME];

		snprintf(name, sizeof(name), "link:%s:%s", device->if_name, group->one->name + 7);
		err = set_one(group, name);
	}
	if (devices)
		if_freenameindex(devices);
	return err;
}

/* The kernel takes the value and keeps its own. */
enum { KEPT = -ECANCELED };

static int apply_one(struct settings *settings, struct applied *one)
{
	struct group group = { .settings = settings, .one = one };
	int err;

	if (begins(one->name, "join:"))
		return 0;
	if (begins(one->name, "mkdir:"))
		return undo_mkdir(&settings->undo, strchr(one->name, ':') + 1);
	err = begins(one->name, "threads:") ? set_threads(&group) : begins(one->name, "link:") ? set_links(&group) :
		begins(one->name, "controller:") ? set_one(&group, one->name) : each_file(one->name, set_one, &group);
	if (!err && !group.set && !group.had)
		err = group.err ? group.err : group.kept ? KEPT : -ENOENT;
	if (!err && strstr(one->shown, " invalid")) /* a partition that the kernel does not make */
		err = KEPT;
	snprintf(one->counts, sizeof(one->counts), "%d set, %d had it, %d kept by the kernel, %d refused%s%s", group.set, group.had, group.kept,
		 group.refused, group.err ? ": " : "", group.err ? strerror(-group.err) : "");
	return err;
}

int settings_apply(struct settings *settings, const struct config *config, char *why, size_t room)
{
	int err = config->n_settings ? undo_open_settings(&settings->undo) : 0;

	if (err)
		return text_refuse(why, room, err, "settings can't be changed, because no journal of them can be written: %s", strerror(-err));
	settings->each = calloc((size_t)config->n_settings + 1, sizeof(*settings->each));
	if (!settings->each)
		return text_refuse(why, room, -ENOMEM, "there is no memory for the settings");
	for (int i = 0; !err && i < config->n_settings; i++) {
		struct applied *one = &settings->each[i];
		const char *value = NULL;

		(void)split(config->settings[i], one->name, &value);
		snprintf(one->asked, sizeof(one->asked), "%s", value ? value : "");
		err = apply_one(settings, one);
		settings->count = i + 1;
		if (err)
			text_refuse(why, room, err, "%s can't be set to '%s': %s; all settings are as before", one->name, one->asked,
				    err == KEPT ? "the kernel keeps the value that it has" :
				    err == -ENOSPC ? "its journal can't be written: No space left on device" : undo_error(err));
	}
	if (!err && config->n_settings)
		err = undo_applied(&settings->undo);
	if (err)
		settings_restore(settings);
	return err;
}

int settings_join(const struct config *config, char *why, size_t room)
{
	char path[NAME + sizeof("/cgroup.procs")];

	for (int i = 0; i < config->n_settings; i++) {
		if (!begins(config->settings[i], "join:"))
			continue;
		snprintf(path, sizeof(path), "%s/cgroup.procs", strchr(config->settings[i], ':') + 1);
		int err = text_write_file(path, "0");

		if (err)
			return text_refuse(why, room, err, "the run can't move to %s: %s", path, strerror(-err));
	}
	return 0;
}

void settings_describe(struct settings *settings, struct run *run, enum moment moment)
{
	for (int i = 0; i < settings->count; i++) {
		const struct applied *one = &settings->each[i];
		char key[32], present[SETTING_MOST];

		snprintf(key, sizeof(key), "setting.%d", i);
		if (moment == MOMENT_START)
			run_fact(run, WHOLE_RUN, moment, key, "%s\t%s\t%s\t%s\t%s", one->name, one->asked, one->before, one->shown, one->counts);
		else if (*one->name == '/' && !setting_read(one->name, present) && strcmp(present, one->shown))
			run_fact(run, WHOLE_RUN, moment, key, "%s\t%s", one->name, present);
	}
}

void settings_restore(struct settings *settings)
{
	for (int i = 0; settings->each && i < settings->count; i++)
		if (begins(settings->each[i].name, "join:"))
			control_group_leave(0); /* a group with a process in it can't be removed */
	undo_close(&settings->undo);
	free(settings->each);
	settings->each = NULL;
	settings->count = 0;
}

int settings_try(const struct config *config, char *why, size_t room)
{
	struct settings settings = { 0 };
	int err = settings_apply(&settings, config, why, room);

	for (int i = 0; !err && i < settings.count; i++) {
		const struct applied *one = &settings.each[i];

		fprintf(stderr, "setting\t%s\t%s\t%s\t%s\t%s\n", one->name, one->asked, one->before, one->shown, one->counts);
	}
	settings_restore(&settings);
	if (!err)
		fprintf(stderr, "restored\n");
	return err;
}
