/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "loads/common/group.h"
#include "loads/common/keeper.h"
#include "loads/common/program.h"
#include "loads/load.h"
#include "system/clock.h"
#include "system/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define RESTART_LEAST_NS 100000000LL
#define SETTLE_NS 300000000LL

const struct load *load_find(const char *name)
{
	for (const struct load *const *load = loads; *load; load++)
		if (!strcmp((*load)->name, name))
			return *load;
	return NULL;
}

const struct load_option load_common[] = {
	{ "restart", "kill it and start it again this often, such as 65s (default: never)", 0, 0, LOAD_TEXT },
	{ NULL, NULL, 0, 0, 0 },
};

static int parse_restart(struct running_load *running, const char *value, char *why, size_t room)
{
	if (value && !text_duration_ns(value, &running->restart_ns) && running->restart_ns >= RESTART_LEAST_NS)
		return 0;
	snprintf(why, room, "option 'restart' of load '%s' takes a time of at least 100ms, such as 65s", running->name);
	return -EINVAL;
}

static int parse_text(const char *name, const struct load_option *option, const char *value, const char **text,
		      char *why, size_t room)
{
	int64_t length = value ? (int64_t)strlen(value) : -1;

	*text = value;
	if (length >= option->least && length <= option->most)
		return 0;
	snprintf(why, room, "option '%s' of load '%s' takes %lld to %lld characters", option->name, name,
		 (long long)option->least, (long long)option->most);
	return -EINVAL;
}

static int parse_option(struct running_load *running, char *text, char *why, size_t room)
{
	const struct load *load = running->load;
	char *value = strchr(text, '=');

	if (value)
		*value++ = '\0';
	if (!strcmp(text, load_common->name))
		return parse_restart(running, value, why, room);
	for (int i = 0; load->options[i].name; i++) {
		const struct load_option *option = &load->options[i];

		if (strcmp(option->name, text))
			continue;
		if (option->preset == LOAD_TEXT)
			return parse_text(running->name, option, value, &running->order.texts[i], why, room);
		if (value && !text_number(value, option->least, option->most, &running->order.values[i]))
			return 0;
		snprintf(why, room, "option '%s' of load '%s' takes a whole number from %lld to %lld", option->name,
			 running->name, (long long)option->least, (long long)option->most);
		return -EINVAL;
	}
	snprintf(why, room, "load '%s' has no option '%s'", running->name, text);
	return -EINVAL;
}

int load_keep_text(const char *text, struct running_load *running, char *why, size_t room)
{
	memset(running, 0, sizeof(*running));
	running->name = running->given;
	if (snprintf(running->given, LOAD_GIVEN, "%s", text) < LOAD_GIVEN)
		return 0;
	snprintf(why, room, "a load takes fewer than %d characters", LOAD_GIVEN);
	return -EINVAL;
}

int load_parse_options(struct running_load *running, char *why, size_t room)
{
	char *rest = NULL, *options = strchr(running->given, ':');
	int err = 0;

	if (options)
		*options++ = '\0';
	if (!running->load)
		running->load = load_find(running->name);
	if (!running->load) {
		snprintf(why, room, "there is no load '%s'; see rtproof-agent list", running->name);
		return -EINVAL;
	}
	for (int i = 0; i < LOAD_OPTIONS; i++)
		running->order.values[i] = -1;
	for (char *one = options ? strtok_r(options, ",", &rest) : NULL; one && !err; one = strtok_r(NULL, ",", &rest))
		err = parse_option(running, one, why, room);
	return err;
}

int load_parse(const char *text, struct running_load *running, char *why, size_t room)
{
	int err = load_keep_text(text, running, why, room);

	return err ? err : load_parse_options(running, why, room);
}

const char *load_unit(const struct running_load *running)
{
	return running->load->unit ? running->load->unit : program_unit(&running->order);
}

void load_die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent) /* it died before the line above */
		_exit(1);
}

pid_t load_spawn(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		load_die_with(parent);
	return pid < 0 ? -errno : pid;
}

int load_exit_error(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) ? -WEXITSTATUS(status) : -ECHILD;
}

int load_wait_for_children(void)
{
	int status = 0;

	while (wait(&status) < 0 && errno == EINTR)
		;
	return load_exit_error(status);
}

int load_share_memory(struct load_order *order, int mib, int64_t most, int64_t parts)
{
	int64_t each = memory_room() / LOAD_MIB / parts, *wanted = &order->values[mib];

	if (*wanted > each / 2)
		return -ENOMEM;
	if (*wanted <= 0)
		*wanted = each / 4 > most ? most : each / 4 > 1 ? each / 4 : 1;
	return 0;
}

void *load_map(size_t size)
{
	void *region = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return region == MAP_FAILED ? NULL : region;
}

int load_open_file(void)
{
	char name[] = "fileXXXXXX";
	int fd = mkstemp(name);

	if (fd < 0)
		return -errno;
	unlink(name);
	return fd;
}

void load_touch(char *region, size_t size, struct load_slot *slot)
{
	volatile char *page = region;
	size_t step = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < size; at += step) {
		page[at] = 1;
		slot->work += at % LOAD_MIB == 0;
	}
}

static void be_the_victim(void)
{
	int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (file < 0) /* kernels before 2.6.36 have no such file */
		return;
	ssize_t written = write(file, "1000", 4);

	(void)written;
	close(file);
}

void load_default_signals(void)
{
	static const int ours[] = { SIGINT, SIGTERM, SIGPIPE, SIGXFSZ };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < (int)(sizeof(ours) / sizeof(*ours)); i++)
		signal(ours[i], SIG_DFL);
}

static void fill_in_presets(const struct load_option *options, struct load_order *order)
{
	for (int i = 0; options[i].name; i++)
		if (order->values[i] < 0)
			order->values[i] = options[i].preset == LOAD_PER_CPU ? order->cpus : options[i].preset;
}

static uint32_t count_slots(const struct load *load, const struct load_order *order)
{
	return load->slots ? load->slots(order) : (uint32_t)order->values[0];
}

const char *load_missing(const struct load *load, int cpus)
{
	struct load_order order = { .cpus = cpus };

	memset(order.values, -1, sizeof(order.values));
	fill_in_presets(load->options, &order);
	return load->unsupported ? load->unsupported(&order) : NULL;
}

static int say(const struct running_load *running, int err, char *why, size_t room)
{
	snprintf(why, room, "load %s could not be started: %s", running->name, strerror(-err));
	return err;
}

int load_prepare(struct running_load *running, char *why, size_t room)
{
	const struct load *load = running->load;
	const char *missing;

	fill_in_presets(load->options, &running->order);
	missing = load->unsupported ? load->unsupported(&running->order) : NULL;
	if (missing) {
		snprintf(why, room, "load %s can't run here: %s", running->name, missing);
		return -ENOSYS;
	}
	running->slots = count_slots(load, &running->order);
	int err = running->slots ? 0 : -EINVAL;

	if (!err && load->prepare)
		err = load->prepare(&running->order);
	return err ? say(running, err, why, room) : 0;
}

/* With twice the room: the load shall not be what fills the medium, nor see it full. */
static int open_folder(struct running_load *running)
{
	int64_t space = running->load->space ? running->load->space(&running->order) : 0;

	if (!space)
		return 0;
	int err = folder_open(&running->folder);

	if (err || 2 * space <= folder_room(&running->folder))
		return err;
	folder_leave(&running->folder);
	folder_await_end(&running->folder);
	return -ENOSPC;
}

/* Of a program. Where there can be no group, its keeper counts. */
static void open_group(struct running_load *running)
{
	const struct load_order *order = &running->order;

	if (!order->words)
		return;
	const struct group_limits limits = { order->values[PROGRAM_MEMORY] * LOAD_MIB, order->values[PROGRAM_PROCESSES] };

	if (group_open(&running->group, &limits) == 0)
		running->order.group = &running->group;
	running->order.note = order->group ? "a control group holds it to its limits of memory and processes" :
					     "its memory and processes are counted four times a second; there is no control group";
}

static int work_on_all(const struct running_load *running)
{
	for (uint32_t i = 0; i < running->slots; i++) {
		pid_t pid = load_spawn();

		if (pid < 0)
			return pid;
		if (pid == 0)
			_exit(-running->load->work(&running->order, &running->order.slots[i]));
	}
	return load_wait_for_children();
}

int load_be(struct running_load *running)
{
	be_the_victim();
	if (running->folder.cleaner && chdir(running->folder.path) < 0)
		return -errno;
	return running->load->work ? work_on_all(running) : running->load->run(&running->order);
}

static pid_t start_load(struct running_load *running)
{
	pid_t pid = load_spawn();

	if (pid == 0) {
		setpgid(0, 0);
		streams_close();
		load_default_signals();
		_exit(-load_be(running));
	}
	if (pid > 0)
		setpgid(pid, pid); /* either side may come first */
	return pid;
}

static int start_processes(struct running_load *running)
{
	size_t size = running->slots * sizeof(struct load_slot);

	running->order.slots = mmap(NULL, size + LOAD_WHY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	running->seen = calloc(running->slots, sizeof(*running->seen));
	running->worked = calloc(running->slots, sizeof(*running->worked));
	if (running->order.slots == MAP_FAILED || !running->seen || !running->worked)
		return -ENOMEM;
	running->order.why = (char *)(running->order.slots + running->slots);
	running->pid = keeper_needed(running) ? keeper_start(running) : start_load(running);
	return running->pid < 0 ? running->pid : 0;
}

int load_start(struct running_load *running, char *why, size_t room)
{
	int err = load_prepare(running, why, room);

	if (err)
		return err;
	open_group(running);
	err = open_folder(running);
	if (!err)
		err = start_processes(running);
	folder_leave(&running->folder);
	folder_leave(&running->group);
	return err ? say(running, err, why, room) : 0;
}

/* It has not been waited for yet, so nobody else can have its number. */
static void bury(struct running_load *running, char *why, size_t room)
{
	const char *name = running->name, *reason = running->order.why;
	int status = 0;

	kill(-running->pid, SIGKILL); /* what is left of its group */
	if (keeper_needed(running))
		keeper_bury(running->pid);
	waitpid(running->pid, &status, 0);
	running->pid = 0;
	if (!*reason) /* a load ends with the error that ended it */
		reason = load_exit_error(status) == -ECHILD ? "a process of it was killed" : strerror(-load_exit_error(status));
	snprintf(why, room, "load %s died: %.*s", name, LOAD_WHY, reason);
}

bool load_died(struct running_load *running, char *why, size_t room)
{
	siginfo_t end = { .si_pid = 0 };

	if (running->pid <= 0 || waitid(P_PID, (id_t)running->pid, &end, WEXITED | WNOHANG | WNOWAIT) < 0 || !end.si_pid)
		return false;
	bury(running, why, room);
	return true;
}

/* Gives programs that are of no use here a moment to say so. */
static int settle(struct running_load *running, int count, char *why, size_t room)
{
	int64_t until_ns = clock_now_ns() + SETTLE_NS;
	bool programs = false;

	for (int i = 0; i < count; i++)
		programs = programs || running[i].order.words;
	while (programs && clock_now_ns() < until_ns) {
		for (int i = 0; i < count; i++)
			if (load_died(&running[i], why, room))
				return -ECHILD;
		sys_sleep(CLOCK_MONOTONIC, 0, SETTLE_NS / 30);
	}
	return 0;
}

int loads_start(struct running_load *running, int count, char *why, size_t room)
{
	folder_sweep_files();
	group_sweep();
	for (int i = 0; i < count; i++) {
		int err = load_start(&running[i], why, room);

		if (err)
			return err;
	}
	return settle(running, count, why, room);
}

void loads_stop(struct running_load *running, int count)
{
	for (int i = 0; i < count; i++)
		load_stop(&running[i]);
}

int64_t load_work(struct running_load *running)
{
	for (uint32_t i = 0; i < running->slots; i++) {
		uint32_t now = running->order.slots[i].work;

		running->work += now - running->seen[i];
		running->worked[i] = running->worked[i] || (running->read && now != running->seen[i]);
		running->seen[i] = now;
	}
	running->read = true;
	return running->work;
}

int load_idle_parts(const struct running_load *running)
{
	int idle = 0;

	for (uint32_t i = 0; i < running->slots; i++)
		idle += !running->worked[i];
	return idle;
}

void load_stop(struct running_load *running)
{
	if (running->pid > 0) {
		kill(keeper_needed(running) ? running->pid : -running->pid, keeper_needed(running) ? SIGTERM : SIGKILL);
		kill(running->pid, SIGCONT); /* should someone have stopped the keeper */
		while (waitpid(running->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	folder_await_end(&running->folder);
	folder_await_end(&running->group);
	if (running->order.slots && running->order.slots != MAP_FAILED)
		munmap(running->order.slots, running->slots * sizeof(struct load_slot) + LOAD_WHY);
	free(running->seen);
	free(running->worked);
	memset(running, 0, sizeof(*running));
}
