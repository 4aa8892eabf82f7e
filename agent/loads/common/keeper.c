/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "loads/common/keeper.h"

#include "loads/common/group.h"
#include "loads/common/program.h"
#include "system/clock.h"
#include "system/folder.h"
#include "system/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

enum { LOOK_NS = 250000000, PAUSE_NS = 1000000, READ_BYTES = 65536, /* as much as a pipe holds */ REAP = 1000 };
enum { SIGNALS, OUTPUT, ERRORS, SOURCES };

struct keeper {
	struct running_load *running;
	pid_t self;  /* as /proc has it */
	bool apart;  /* all there is in this PID namespace, but us, is of the load */
	bool first;  /* it has a real-time priority, and what it was before: */
	int policy, slack_ns;
	struct pollfd sources[SOURCES];
	int write_ends[SOURCES];
	pid_t pid; /* of the load's first process */
	int64_t until_ns, look_ns;
	char *text; /* of READ_BYTES: what was read last */
	char line[LOAD_WHY]; /* the last line that it wrote on its standard error */
	size_t length;
	bool line_ended;
};

bool keeper_needed(const struct running_load *running)
{
	return running->restart_ns || running->order.words;
}

static int fail(struct keeper *keeper, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct keeper *keeper, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (!*keeper->running->order.why)
		vsnprintf(keeper->running->order.why, LOAD_WHY, format, arguments);
	va_end(arguments);
	return -ECHILD;
}

/*
 * In a PID namespace it gets a /proc where it finds itself, and a /dev/shm that goes with it; not where that would hide its
 * working directory. What is refused it does without.
 */
static void furnish(const struct running_load *running)
{
	static const char shared[] = "/dev/shm";

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return;
	mount("proc", "/proc", "proc", 0, NULL);
	if (strncmp(running->folder.path, shared, strlen(shared)))
		mount("tmpfs", shared, "tmpfs", 0, NULL);
}

/*
 * Without a control group it counts itself, and would not get its turn among too many processes. It needs the lowest real-time
 * priority for that, below every measuring thread that has one. What is refused it does without.
 */
static void go_first(struct keeper *keeper)
{
	const struct load_order *order = &keeper->running->order;

	if (!order->words || order->group || order->last || sys_get_priority(0))
		return;
	keeper->policy = sys_get_policy(0);
	keeper->slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	keeper->first = sys_set_policy(0, SCHED_FIFO, 1) == 0;
}

/* A load is as it would be without. From Linux 6.12 on its timer slack would have gone with its parent's. */
static void go_last(const struct keeper *keeper)
{
	if (!keeper->first)
		return;
	if (sys_set_policy(0, keeper->policy, 0) < 0)
		_exit(EPERM);
	prctl(PR_SET_TIMERSLACK, keeper->slack_ns, 0, 0, 0);
}

static int start(struct keeper *keeper)
{
	struct running_load *running = keeper->running;
	int64_t now_ns = clock_now_ns();

	keeper->until_ns = running->restart_ns ? now_ns + running->restart_ns : INT64_MAX;
	keeper->pid = load_spawn();
	if (keeper->pid == 0) {
		go_last(keeper);
		setpgid(0, 0);
		load_default_signals();
		if (keeper->apart)
			furnish(running);
		for (int i = OUTPUT; i < SOURCES; i++)
			if (keeper->write_ends[i] >= 0)
				dup2(keeper->write_ends[i], i == OUTPUT ? STDOUT_FILENO : STDERR_FILENO);
		_exit(-load_become(running));
	}
	if (keeper->pid < 0)
		return keeper->pid;
	setpgid(keeper->pid, keeper->pid);
	return 0;
}

/* Of all that have ended, orphans among them: whether it was the load's first process, and how. */
static bool has_ended(const struct keeper *keeper, int *status)
{
	bool found = false;
	pid_t one;
	int other;

	for (int i = 0; i < REAP && (one = waitpid(-1, &other, WNOHANG)) > 0; i++) {
		if (one != keeper->pid)
			continue;
		found = true;
		*status = other;
	}
	return found;
}

/* Built-in loads stay in their group, or die with their parents. Programs may do as they like. */
static void kill_all(const struct keeper *keeper)
{
	if (keeper->pid > 0)
		kill(-keeper->pid, SIGKILL);
	if (keeper->apart)
		kill(-1, SIGKILL);
	else if (keeper->running->order.words)
		processes_kill(keeper->self);
}

/* Who is killed needs a CPU to die on: we leave it for as long as we took. */
static void end_all(struct keeper *keeper)
{
	int64_t before_ns = clock_now_ns();
	pid_t pid;

	kill_all(keeper);
	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 || errno == EINTR) {
		if (pid)
			continue;
		sys_sleep(CLOCK_MONOTONIC, 0, clock_now_ns() - before_ns + PAUSE_NS);
		before_ns = clock_now_ns();
		kill_all(keeper);
	}
	keeper->pid = 0;
}

static void take_errors(struct keeper *keeper, const char *text, ssize_t length)
{
	for (ssize_t i = 0; i < length; i++) {
		if (text[i] == '\n') {
			keeper->line_ended = true;
			continue;
		}
		if (keeper->line_ended)
			keeper->length = 0;
		keeper->line_ended = false;
		if (keeper->length == sizeof(keeper->line) - 1)
			continue;
		keeper->line[keeper->length] = ' ';
		if ((unsigned char)text[i] > ' ')
			keeper->line[keeper->length] = text[i];
		keeper->length++;
	}
	keeper->line[keeper->length] = '\0';
}

static void take_output(struct keeper *keeper, const char *text, ssize_t length)
{
	int64_t counts = keeper->running->order.values[PROGRAM_COUNT];
	struct load_slot *slot = keeper->running->order.slots;

	if (counts == COUNT_BYTES)
		slot->work += (uint32_t)length;
	for (ssize_t i = 0; i < length && counts == COUNT_LINES; i++)
		slot->work += text[i] == '\n';
}

/* Once for each, so that a program that never stops talking does not keep us from the rest. */
static void take_all(struct keeper *keeper)
{
	for (int i = OUTPUT; i < SOURCES; i++) {
		ssize_t length = keeper->sources[i].fd < 0 ? 0 : read(keeper->sources[i].fd, keeper->text, READ_BYTES);

		if (length > 0)
			(i == ERRORS ? take_errors : take_output)(keeper, keeper->text, length);
	}
}

/* Waits for a signal, something to read, or the time: the number of the signal, or 0. */
static int await(struct keeper *keeper)
{
	int64_t now_ns = clock_now_ns();
	int64_t wait_ns = (keeper->until_ns < keeper->look_ns ? keeper->until_ns : keeper->look_ns) - now_ns;
	int64_t wait_ms = wait_ns < 0 ? 0 : wait_ns / 1000000 + 1;
	struct signalfd_siginfo info;

	if (poll(keeper->sources, SOURCES, wait_ms > INT_MAX ? -1 : (int)wait_ms) <= 0 || !keeper->sources[SIGNALS].revents)
		return 0;
	return read(keeper->sources[SIGNALS].fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

/* Of those that have been waited for. */
static int64_t waited_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000LL + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static int fail_for_processes(struct keeper *keeper)
{
	return fail(keeper, "it wanted more than %d processes", (int)keeper->running->order.values[PROGRAM_PROCESSES]);
}

static int fail_for_memory(struct keeper *keeper)
{
	return fail(keeper, "it took more than %d MiB of memory", (int)keeper->running->order.values[PROGRAM_MEMORY]);
}

/* What the kernel kept it from, if a group holds it. */
static int look_at_group(struct keeper *keeper)
{
	const struct folder *group = keeper->running->order.group;

	if (group && group_lacked_processes(group))
		return fail_for_processes(keeper);
	return group && group_lacked_memory(group) ? fail_for_memory(keeper) : 0;
}

/* Counts CPU time and holds the program to its limits. */
static int look(struct keeper *keeper)
{
	const struct load_order *order = &keeper->running->order;
	const int64_t *limits = order->values;
	struct processes found;
	int64_t ticks = 0, pages = 0, before_ns = clock_now_ns();
	int err = processes_below(keeper->self, order->group ? INT_MAX : limits[PROGRAM_PROCESSES], &found);
	int64_t now_ns = clock_now_ns();

	keeper->look_ns = now_ns + LOOK_NS + 3 * (now_ns - before_ns); /* a quarter of a CPU at most */
	if (err)
		return 0;
	for (int i = 0; i < found.count; i++) {
		ticks += found.each[i].cpu_ticks;
		pages += found.each[i].pages;
	}
	free(found.each);
	uint32_t ms = (uint32_t)(waited_ms() + ticks * 1000 / sysconf(_SC_CLK_TCK));

	if (limits[PROGRAM_COUNT] == COUNT_CPU_MS && (int32_t)(ms - order->slots->work) > 0) /* who ends meanwhile is missing */
		order->slots->work = ms;
	if (order->group)
		return look_at_group(keeper);
	if (found.count > limits[PROGRAM_PROCESSES])
		return fail_for_processes(keeper);
	return pages * sysconf(_SC_PAGESIZE) > limits[PROGRAM_MEMORY] * LOAD_MIB ? fail_for_memory(keeper) : 0;
}

static int start_again(struct keeper *keeper)
{
	end_all(keeper);
	return start(keeper);
}

static int take_end(struct keeper *keeper, int status)
{
	const struct load_order *order = &keeper->running->order;
	const char *colon = keeper->length ? ": " : "";

	keeper->pid = 0;
	if (!order->words)
		return load_exit_error(status);
	if (look_at_group(keeper))
		return -ECHILD;
	if (status == 0 && order->values[PROGRAM_AGAIN]) {
		order->slots->work += order->values[PROGRAM_COUNT] == COUNT_RUNS;
		return start_again(keeper);
	}
	if (WIFSIGNALED(status))
		return fail(keeper, "signal %d killed it", WTERMSIG(status));
	return fail(keeper, "it ended with exit code %d%s%s", WEXITSTATUS(status), colon, keeper->line);
}

static int keep(struct keeper *keeper)
{
	go_first(keeper);
	int err = start(keeper), status = 0;

	while (!err) {
		int number = await(keeper);
		bool ended = has_ended(keeper, &status);

		take_all(keeper);
		if (number == SIGTERM)
			err = -ECANCELED;
		else if (ended)
			err = take_end(keeper, status);
		else if (clock_now_ns() >= keeper->until_ns)
			err = start_again(keeper);
		else if (clock_now_ns() >= keeper->look_ns)
			err = look(keeper);
		else if (keeper->first) /* so that nobody can wake it all the time */
			sys_sleep(CLOCK_MONOTONIC, 0, PAUSE_NS);
	}
	end_all(keeper);
	return err;
}

static int open_pipe(struct keeper *keeper, int source)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	keeper->sources[source].fd = ends[0];
	keeper->write_ends[source] = ends[1];
	return 0;
}

static int open_pipes(struct keeper *keeper)
{
	const struct load_order *order = &keeper->running->order;
	int err = 0;

	if (!order->words)
		return 0;
	keeper->look_ns = clock_now_ns() + LOOK_NS;
	keeper->text = load_map(READ_BYTES);
	err = keeper->text ? open_pipe(keeper, ERRORS) : -ENOMEM;
	if (!err && order->values[PROGRAM_COUNT] >= COUNT_LINES)
		err = open_pipe(keeper, OUTPUT);
	return err;
}

/* Where Linux can (3.4), it inherits what the load leaves behind. */
static int be_the_keeper(struct running_load *running, bool apart)
{
	struct keeper keeper = { .running = running, .apart = apart && getpid() == 1, .look_ns = INT64_MAX, .write_ends = { -1, -1, -1 } };
	struct process self = { .pid = getpid() };
	sigset_t blocked;

	setsid();
	streams_close();
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (!keeper.apart) /* else the agent's death kills it, and that all others, also while it is stopped */
		prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	processes_self(&self);
	keeper.self = self.pid;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigaddset(&blocked, SIGTERM);
	for (int i = 0; i < SOURCES; i++)
		keeper.sources[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	keeper.sources[SIGNALS].fd = signalfd(-1, &blocked, SFD_CLOEXEC);
	int err = keeper.sources[SIGNALS].fd < 0 ? -errno : open_pipes(&keeper);

	if (!err)
		err = load_bind(running); /* it works for the load, so it runs where the load does */
	return err ? err : keep(&keeper);
}

/*
 * fork() into a new PID namespace, whose first process takes all others with it, and one for System V's objects and message
 * queues, which go with it. It does not see its parent but through /proc, and without that it could not know of one that died
 * before it asked to be told.
 */
static pid_t spawn_apart(void)
{
	pid_t parent = getpid(), pid = access("/proc/self/stat", R_OK) < 0 ? -1 : sys_clone(CLONE_NEWPID | CLONE_NEWIPC | SIGCHLD);
	struct process self;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (processes_self(&self) || self.parent != parent)
			_exit(1);
	}
	return pid;
}

pid_t keeper_start(struct running_load *running)
{
	sigset_t all, before;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before); /* to be asked to end must not be lost before it listens */
	pid_t pid = running->order.words ? spawn_apart() : -1;
	bool apart = pid >= 0;

	if (!apart)
		pid = load_spawn();
	if (pid == 0)
		_exit(-be_the_keeper(running, apart));
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

void keeper_bury(pid_t keeper)
{
	processes_kill(keeper);
}
