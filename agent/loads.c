/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "load.h"

#include "clock.h"
#include "text.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

/* At most what poll() can wait for. */
#define RESTART_LEAST_NS 100000000LL
#define RESTART_MOST_NS (24 * 86400 * NS_PER_SECOND)

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
	if (value && !text_duration_ns(value, &running->restart_ns) && running->restart_ns >= RESTART_LEAST_NS &&
	    running->restart_ns <= RESTART_MOST_NS)
		return 0;
	snprintf(why, room, "option 'restart' of load '%s' takes a time from 100ms to 24d, such as 65s", running->load->name);
	return -EINVAL;
}

static int parse_text(const struct load *load, const struct load_option *option, const char *value, const char **text,
		      char *why, size_t room)
{
	int64_t length = value ? (int64_t)strlen(value) : -1;

	*text = value;
	if (length >= option->least && length <= option->most)
		return 0;
	snprintf(why, room, "option '%s' of load '%s' takes %lld to %lld characters", option->name, load->name,
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
			return parse_text(load, option, value, &running->order.texts[i], why, room);
		if (value && !text_number(value, option->least, option->most, &running->order.values[i]))
			return 0;
		snprintf(why, room, "option '%s' of load '%s' takes a whole number from %lld to %lld", option->name,
			 load->name, (long long)option->least, (long long)option->most);
		return -EINVAL;
	}
	snprintf(why, room, "load '%s' has no option '%s'", load->name, text);
	return -EINVAL;
}

int load_parse(const char *text, struct running_load *running, char *why, size_t room)
{
	char *rest = NULL, *options;
	int err = 0;

	memset(running, 0, sizeof(*running));
	if (snprintf(running->given, LOAD_GIVEN, "%s", text) >= LOAD_GIVEN) {
		snprintf(why, room, "a load takes fewer than %d characters", LOAD_GIVEN);
		return -EINVAL;
	}
	options = strchr(running->given, ':');
	if (options)
		*options++ = '\0';
	running->load = load_find(running->given);
	if (!running->load) {
		snprintf(why, room, "there is no load '%s'; see rtproof-agent list", running->given);
		return -EINVAL;
	}
	for (int i = 0; i < LOAD_OPTIONS; i++)
		running->order.values[i] = -1;
	for (char *one = options ? strtok_r(options, ",", &rest) : NULL; one && !err; one = strtok_r(NULL, ",", &rest))
		err = parse_option(running, one, why, room);
	return err;
}

pid_t load_spawn(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != parent) /* it died before the line above */
			_exit(1);
	}
	return pid < 0 ? -errno : pid;
}

static int exit_error(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) ? -WEXITSTATUS(status) : -ECHILD;
}

int load_wait_for_children(void)
{
	int status = 0;

	while (wait(&status) < 0 && errno == EINTR)
		;
	return exit_error(status);
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

void load_touch(char *region, size_t size, struct load_slot *slot)
{
	volatile char *page = region;
	size_t step = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < size; at += step) {
		page[at] = 1;
		slot->work += at % LOAD_MIB == 0;
	}
}

/* A load must not keep the agent's pipes open, nor die of its signals, nor be spared when memory runs out. */
static void leave_the_agent(void)
{
	sigset_t none;
	int victim = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	setpgid(0, 0);
	streams_close();
	if (victim >= 0) {
		ssize_t written = write(victim, "1000", 4);

		(void)written; /* kernels before 2.6.36 have no such file */
		close(victim);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
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
	snprintf(why, room, "load %s could not be started: %s", running->load->name, strerror(-err));
	return err;
}

int load_prepare(struct running_load *running, char *why, size_t room)
{
	const struct load *load = running->load;
	const char *missing;

	fill_in_presets(load->options, &running->order);
	missing = load->unsupported ? load->unsupported(&running->order) : NULL;
	if (missing) {
		snprintf(why, room, "load %s can't run here: %s", load->name, missing);
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
	if (!running->load->space)
		return 0;
	int err = folder_open(&running->folder);

	if (err || 2 * running->load->space(&running->order) <= folder_room(&running->folder))
		return err;
	folder_leave(&running->folder);
	folder_await_end(&running->folder);
	return -ENOSPC;
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

static int be_the_load(struct running_load *running)
{
	if (running->folder.cleaner && chdir(running->folder.path) < 0)
		return -errno;
	return running->load->work ? work_on_all(running) : running->load->run(&running->order);
}

static void await_end_of_all(void)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

/* Waits for a signal: its number, or 0 when it is time. */
static int await_signal(int signal_fd, int64_t until_ns)
{
	struct pollfd fd = { .fd = signal_fd, .events = POLLIN };
	struct signalfd_siginfo info;
	int64_t left_ns;

	while ((left_ns = until_ns - clock_now_ns()) > 0)
		if (poll(&fd, 1, (int)(left_ns / 1000000) + 1) > 0 && read(signal_fd, &info, sizeof(info)) == sizeof(info))
			return (int)info.ssi_signo;
	return 0;
}

/* Of all that have ended, orphans among them: whether it was this one, and how. */
static bool has_ended(pid_t pid, int *status)
{
	int other;
	pid_t one;
	bool found = false;

	while ((one = waitpid(-1, &other, WNOHANG)) > 0) {
		if (one != pid)
			continue;
		found = true;
		*status = other;
	}
	return found;
}

/* One round of a load, in a group of its own. 0 after its time, -ECANCELED when we shall end, or how it failed. */
static int do_round(struct running_load *running, int signal_fd, const sigset_t *mask)
{
	int64_t until_ns = clock_now_ns() + running->restart_ns;
	int status = 0, number = SIGCHLD;
	bool ended = false;
	pid_t pid = load_spawn();

	if (pid < 0)
		return pid;
	if (pid == 0) {
		setpgid(0, 0);
		sigprocmask(SIG_SETMASK, mask, NULL);
		_exit(-be_the_load(running));
	}
	setpgid(pid, pid);
	while (number == SIGCHLD && !ended) {
		number = await_signal(signal_fd, until_ns);
		ended = has_ended(pid, &status);
	}
	kill(-pid, SIGKILL);
	await_end_of_all();
	return ended ? exit_error(status) : number == SIGTERM ? -ECANCELED : 0;
}

/* Inherits what a round leaves behind, where Linux can (3.4), and sees it go before it starts the next one. */
static int do_rounds(struct running_load *running)
{
	sigset_t blocked, before;
	int err = 0;

	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	int signal_fd = signalfd(-1, &blocked, SFD_CLOEXEC);

	while (!err)
		err = do_round(running, signal_fd, &before);
	return err;
}

static int start_processes(struct running_load *running)
{
	size_t size = running->slots * sizeof(struct load_slot);

	running->order.slots = mmap(NULL, size + LOAD_WHY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	running->seen = calloc(running->slots, sizeof(*running->seen));
	if (running->order.slots == MAP_FAILED || !running->seen)
		return -ENOMEM;
	running->order.why = (char *)(running->order.slots + running->slots);
	running->pid = load_spawn();
	if (running->pid == 0) {
		leave_the_agent();
		_exit(-(running->restart_ns ? do_rounds(running) : be_the_load(running)));
	}
	if (running->pid < 0)
		return running->pid;
	setpgid(running->pid, running->pid); /* either side may come first */
	return 0;
}

int load_start(struct running_load *running, char *why, size_t room)
{
	int err = load_prepare(running, why, room);

	if (err)
		return err;
	err = open_folder(running);
	if (!err)
		err = start_processes(running);
	folder_leave(&running->folder);
	return err ? say(running, err, why, room) : 0;
}

void load_bury(struct running_load *running, int status, char *why, size_t room)
{
	const char *name = running->load->name, *reason = running->order.why;

	kill(-running->pid, SIGKILL); /* what is left of its group */
	running->pid = 0;
	if (*reason)
		snprintf(why, room, "load %s died: %.*s", name, LOAD_WHY, reason);
	else if (WIFEXITED(status) && WEXITSTATUS(status)) /* a load ends with the error that ended it */
		snprintf(why, room, "load %s died: %s", name, strerror(WEXITSTATUS(status)));
	else
		snprintf(why, room, "load %s died", name);
}

int64_t load_work(struct running_load *running)
{
	for (uint32_t i = 0; i < running->slots; i++) {
		uint32_t now = running->order.slots[i].work;

		running->work += now - running->seen[i];
		running->seen[i] = now;
	}
	return running->work;
}

void load_stop(struct running_load *running)
{
	if (running->pid > 0) {
		/* One that works in rounds ends what it has started, in another group, before it ends. */
		kill(-running->pid, running->restart_ns ? SIGTERM : SIGKILL);
		while (waitpid(running->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	folder_await_end(&running->folder);
	if (running->order.slots && running->order.slots != MAP_FAILED)
		munmap(running->order.slots, running->slots * sizeof(struct load_slot) + LOAD_WHY);
	free(running->seen);
	memset(running, 0, sizeof(*running));
}
