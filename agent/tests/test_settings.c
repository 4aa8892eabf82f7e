/* SPDX-License-Identifier: Apache-2.0 */
/* What --set takes, and what it does to this machine until the run ends. */
#include "system/sys.h"

#include "run/settings.h"
#include "system/cpus.h"
#include "system/setting.h"
#include "system/text.h"

#include "check.h"

#include <string.h>
#include <sys/wait.h>

static char why[512];

static bool taken(const char *text)
{
	return settings_check(text, why, sizeof(why)) == 0;
}

static void only_what_can_be_undone_is_taken(void)
{
	static const char *const good[] = {
		"/proc/sys/vm/stat_interval=10", "/sys/devices/system/cpu/cpu1/online=0", "/sys/kernel/mm/ksm/run=0",
		"/sys/devices/system/cpu/cpufreq/policy*/scaling_min_freq=@cpuinfo_max_freq", "threads:ksoftirqd/*:policy=fifo:1",
		"threads:*:cpus=0-3,5", "link:*:rx-usecs=0", "controller:cpuset=on", "mkdir:/sys/fs/cgroup/a", "join:/sys/fs/cgroup/a",
		"/proc/sys/kernel/printk=",
	};
	static const char *const bad[] = {
		"", "=", "=1", "/proc/sys/vm/stat_interval", "/etc/passwd=x", "/proc/sysrq-trigger=b", "/proc/sys/../sysrq-trigger=b",
		"/sys/devices/system/cpu/cpu0/online=0", "/sys/devices/system/cpu/smt/control=forceoff", "/sys/kernel/mm/ksm/run=2",
		"/proc/sys/vm/drop_caches=3", "/proc/sys/kernel/core_pattern=|x", "mkdir:/tmp/a", "mkdir:/sys/fs/cgroup/a=1", "join:/etc",
		"mkdir:/sys/fs/cgroup/../../../etc", "threads:*:nice=3", "threads:policy=fifo:1", "wrong:thing=1", "a=b",
		"/proc/sys/kernel/printk=1\n2", "/proc/sys/kernel/printk=1\t2", "cpus:1:1=0", "born:1:0=1",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		CHECK(taken(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		why[0] = '\0';
		CHECK(!taken(bad[i]) && strstr(why, "--set"));
	}
}

static void names_are_read_as_they_are_written(void)
{
	char value[SETTING_MOST], before[SETTING_MOST], name[96];
	struct process self;

	CHECK(processes_self(&self) == 0);
	snprintf(name, sizeof(name), "cpus:%d:%lld", (int)self.pid, (long long)self.started);
	CHECK(setting_read(name, before) == 0 && setting_write(name, before) == 0 && setting_read(name, value) == 0);
	CHECK(!strcmp(value, before) && !setting_thread_is_kept(name));
	snprintf(name, sizeof(name), "policy:%d:%lld", (int)self.pid, (long long)self.started);
	CHECK(setting_read(name, value) == 0 && strchr(value, ':') && setting_write(name, "deadline:1") == -EINVAL);
	CHECK(setting_write(name, "fifo:100") == -EINVAL && setting_write(name, "fif") == -EINVAL);
	snprintf(name, sizeof(name), "policy:%d:%lld", (int)self.pid, (long long)self.started + 1);
	CHECK(setting_read(name, value) == -ESRCH); /* another thread had this number */
	CHECK(setting_read("nothing", value) < 0 && setting_read("link:none:rx-usecs", value) < 0 && setting_read("link:lo:no", value) < 0);
	CHECK(setting_read("/proc/sys/kernel/printk", value) == 0 && !strchr(value, '\t'));
}

static int count(void *given, const struct process *thread)
{
	++*(int *)given;
	return thread->pid <= 0;
}

static void threads_are_found_by_a_pattern(void)
{
	int all = 0, none = 0;

	CHECK(setting_each_thread("*", count, &all) == 0);
	CHECK(setting_each_thread("no thread has this", count, &none) == 0 && none == 0 && all > 0);
}

static bool present_is(const char *path, const char *value)
{
	char present[SETTING_MOST];

	return setting_read(path, present) == 0 && !strcmp(present, value);
}

static void refuses(const char *text, const char *because)
{
	static struct config config;
	struct settings settings = { 0 };

	config = (struct config){ .settings = { text }, .n_settings = 1 };
	CHECK(taken(text) && settings_apply(&settings, &config, why, sizeof(why)) < 0);
	CHECK(strstr(why, because) && strstr(why, "all settings are as before"));
}

/* A pattern stands for files that may not be set; of two files that limit the same only the one in use can be restored. */
static void what_cannot_be_restored_is_refused(void)
{
	char value[SETTING_MOST];
	bool bytes = setting_read("/proc/sys/vm/dirty_bytes", value) == 0 && strcmp(value, "0") != 0;

	refuses("/proc/sys/vm/drop_cache[s]=1", strerror(EPERM));
	refuses("/proc/sys/vm//drop_caches=1", strerror(EPERM));
	refuses("/proc/sys/.?/sysrq-trigger=h", "can't be set to 'h'");
	refuses("/proc/sys/vm/no-such-file=1", strerror(ENOENT));
	refuses(bytes ? "/proc/sys/vm/dirty_ratio=10" : "/proc/sys/vm/dirty_bytes=40000000", strerror(EBUSY));
	refuses("link:lo:rx-usecs=0", strerror(EOPNOTSUPP));
	refuses("/proc/sys/kernel/ostype=x", "can't be set to 'x'");
}

static const char interval[] = "/proc/sys/vm/dirty_writeback_centisecs";

static void set_and_restored(void)
{
	static struct config config;
	struct settings settings = { 0 };
	static char text[96];
	char before[SETTING_MOST];

	CHECK(setting_read(interval, before) == 0);
	snprintf(text, sizeof(text), "%s=%s", interval, strcmp(before, "700") ? "700" : "800");
	config.settings[config.n_settings++] = text;
	config.settings[config.n_settings++] = "threads:no thread has this:cpus=0";
	CHECK(settings_apply(&settings, &config, why, sizeof(why)) == -ENOENT && strstr(why, "all settings are as before"));
	CHECK(present_is(interval, before));
	config.n_settings = 1;
	memset(&settings, 0, sizeof(settings));
	CHECK(settings_apply(&settings, &config, why, sizeof(why)) == 0 && settings.count == 1 && present_is(interval, strchr(text, '=') + 1));
	settings_restore(&settings);
	CHECK(present_is(interval, before) && settings_try(&config, why, sizeof(why)) == 0 && present_is(interval, before));
}

/* Children of a thread that was moved inherit its CPUs, and outlive the run. */
static void threads_that_start_meanwhile_are_restored_too(void)
{
	static struct config config;
	struct settings settings = { 0 };
	struct cpus all, one = { 0 }, now;
	static char text[CPUS_TEXT + 32];
	char list[CPUS_TEXT];
	int ends[2], status;
	pid_t mover, child = 0;

	CHECK(cpus_get_affinity(0, &all) == 0);
	if (cpus_count(&all) < 2)
		return;
	cpus_add(&one, cpus_nth(&all, 0));
	cpus_format(&one, list, sizeof(list));
	snprintf(text, sizeof(text), "threads:rtproof-child:cpus=%s", list);
	config.settings[config.n_settings++] = text;
	CHECK(pipe(ends) == 0 && (mover = fork()) >= 0);
	if (mover == 0) { /* waits until it has been moved, and then has a child */
		FILE *comm = fopen("/proc/self/comm", "w");

		CHECK(comm && fputs("rtproof-child", comm) >= 0 && fclose(comm) == 0 && write(ends[1], "", 1) == 1);
		do
			CHECK(cpus_get_affinity(0, &now) == 0);
		while (cpus_count(&now) > 1 && getppid() > 1);
		child = fork();
		CHECK(child < 0 || child == 0 || write(ends[1], &child, sizeof(child)) == sizeof(child));
		pause();
		_exit(0);
	}
	CHECK(read(ends[0], text + sizeof(text) - 1, 1) == 1);
	text[sizeof(text) - 1] = '\0';
	CHECK(settings_apply(&settings, &config, why, sizeof(why)) == 0);
	CHECK(read(ends[0], &child, sizeof(child)) == sizeof(child));
	CHECK(cpus_get_affinity(child, &now) == 0 && cpus_count(&now) == 1);
	settings_restore(&settings);
	CHECK(cpus_get_affinity(mover, &now) == 0 && cpus_count(&now) == cpus_count(&all));
	CHECK(cpus_get_affinity(child, &now) == 0 && cpus_count(&now) > 1);
	CHECK(kill(child, SIGKILL) == 0 && kill(mover, SIGKILL) == 0 && waitpid(mover, &status, 0) == mover);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], UNDO_KEEPER))
		return undo_main();
	sys_init();
	only_what_can_be_undone_is_taken();
	names_are_read_as_they_are_written();
	threads_are_found_by_a_pattern();
	if (geteuid())
		SKIP("only root can change settings of the machine");
	what_cannot_be_restored_is_refused();
	set_and_restored();
	threads_that_start_meanwhile_are_restored_too();
	return EXIT_SUCCESS;
}
