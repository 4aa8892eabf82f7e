/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "background/waiter.h"

#include "background/background_folder.h"
#include "system/processes.h"
#include "system/text.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* NEW_FOLDERS: of the host's own folder there, what is above a program or a run, and what that is in. */
enum { INHERITED_MOST = 256, EXIT_NOT_STARTED = 126, NEW_FOLDERS = 4 };

/* The standard files lead to the connection, which would stay open as long as one of them is held. */
static int leave_connection(const char *folder, int line)
{
	char path[BACKGROUND_PATH];
	int nothing = open("/dev/null", O_RDWR);
	int log = background_path(path, folder, "log") ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600) : -1;

	if (nothing < 0 || log < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
	    dup2(log, STDERR_FILENO) < 0)
		return -errno;
	for (int fd = STDERR_FILENO + 1; fd < INHERITED_MOST; fd++)
		if (fd != line)
			close(fd);
	return setsid() < 0 ? -errno : 0;
}

/* What the terminal would send to end programs is for the agent alone; the waiter ends after it. */
static void ignore_signals(void (*disposition)(int))
{
	signal(SIGHUP, disposition);
	signal(SIGINT, disposition);
	signal(SIGTERM, disposition);
	signal(SIGPIPE, disposition);
}

static pid_t start_agent(char **arguments)
{
	pid_t pid = fork();
	sigset_t none;

	if (pid)
		return pid;
	ignore_signals(SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv("/proc/self/exe", arguments);
	fprintf(stderr, "rtproof-agent: the agent cannot be started: %s\n", strerror(errno));
	_exit(EXIT_NOT_STARTED);
}

static int write_state(const char *folder, pid_t agent)
{
	char boot[BOOT_ID_ROOM], state[160];
	struct process self, other;
	int err = processes_self(&self);

	/* An agent that has ended already is not waited for yet, so it still has its number. */
	if (!err)
		err = processes_look(agent, &other);
	if (err)
		return err;
	boot_id(boot);
	snprintf(state, sizeof(state), "%d %lld %d %lld %s\n", (int)self.pid, (long long)self.started, (int)agent,
		 (long long)other.started, boot);
	return background_write(folder, "state", state);
}

static void write_end(const char *folder, pid_t agent)
{
	char end[40];
	int status = 0;

	while (waitpid(agent, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		snprintf(end, sizeof(end), "signal %d\n", WTERMSIG(status));
	else
		snprintf(end, sizeof(end), "exit %d\n", WEXITSTATUS(status));
	/* Without room for the word the run is told as one that vanished. */
	(void)background_write(folder, "exit", end);
}

static bool is_followed(const char *folder)
{
	char path[BACKGROUND_PATH];
	int lock = background_path(path, folder, "follower") ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool followed = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0;

	if (lock >= 0)
		close(lock);
	return followed;
}

/* What a host gives that will not come back for the files: after this time without one that follows, they go. 0: they stay. */
static int64_t forget_after_ns(char **arguments)
{
	int64_t ns;

	for (; arguments[0] && arguments[1]; arguments++)
		if (!strcmp(arguments[0], "--forget") && !text_duration_ns(arguments[1], &ns))
			return ns;
	return 0;
}

static void forget(const char *folder, int64_t after_ns)
{
	char path[BACKGROUND_PATH];

	if (!after_ns || !background_path(path, folder, "state"))
		return;
	for (int64_t left_s = (after_ns + NS_PER_SECOND - 1) / NS_PER_SECOND, s = left_s; s && access(path, F_OK) == 0; s--) {
		sleep(1);
		if (is_followed(folder))
			s = left_s + 1;
	}
	(void)background_remove(folder);
}

static _Noreturn void keep(const char *folder, char **arguments, int line)
{
	pid_t agent = -1;
	int err = leave_connection(folder, line);

	ignore_signals(SIG_IGN);
	if (!err) {
		fcntl(line, F_SETFD, FD_CLOEXEC);
		agent = start_agent(arguments);
		err = agent < 0 ? -errno : write_state(folder, agent);
	}
	if (err && agent > 0)
		kill(agent, SIGTERM);
	if (write(line, &err, sizeof(err)) != (ssize_t)sizeof(err))
		err = -EIO;
	close(line);
	if (agent > 0)
		write_end(folder, agent);
	if (agent > 0 && !err)
		forget(folder, forget_after_ns(arguments));
	_exit(err != 0);
}

static int answer_of_waiter(int line)
{
	int err = 0;
	ssize_t n;

	while ((n = read(line, &err, sizeof(err))) < 0 && errno == EINTR)
		;
	return n == (ssize_t)sizeof(err) ? err : -ECHILD;
}

/* A file or folder, and the folders above it that may be as new. */
static void flush_with_folders(const char *path)
{
	char copy[BACKGROUND_PATH];
	const char *each = copy;

	snprintf(copy, sizeof(copy), "%s", path);
	for (int i = 0; i <= NEW_FOLDERS; i++) {
		(void)background_flush(each);
		each = dirname(copy);
	}
}

/*
 * After a power cut the record is fetched by this program. Both may have been brought a moment ago, and then neither the
 * program nor the names of their folders need be on the medium yet.
 */
static void outlive_power_cut(const char *folder)
{
	char program[BACKGROUND_PATH];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (length > 0) {
		program[length] = '\0';
		flush_with_folders(program);
	}
	flush_with_folders(folder);
}

int background_start(const char *folder, char **arguments, char *why, size_t room)
{
	int line[2];

	if (mkdir(folder, 0700) < 0)
		return text_refuse(why, room, -errno, "the folder %s cannot be made: %s", folder, strerror(errno));
	outlive_power_cut(folder);
	if (pipe(line) < 0)
		return text_refuse(why, room, -errno, "no run can be started in the background: %s", strerror(errno));
	pid_t waiter = fork();

	if (waiter == 0)
		keep(folder, arguments, line[1]);
	int err = waiter < 0 ? -errno : 0;

	close(line[1]);
	if (!err)
		err = answer_of_waiter(line[0]);
	close(line[0]);
	if (err) {
		/* Without a state nobody can find this run again, so nothing of it may stay. */
		while (waiter > 0 && waitpid(waiter, NULL, 0) < 0 && errno == EINTR)
			;
		background_discard(folder);
	}
	return err ? text_refuse(why, room, err, "no run can be started in %s: %s", folder, strerror(-err)) : 0;
}

static int signal_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} known[] = { { "int", SIGINT }, { "term", SIGTERM }, { "kill", SIGKILL } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, name))
			return known[i].number;
	return -EINVAL;
}

int background_signal(const char *folder, const char *name, char *why, size_t room)
{
	struct background background;
	int number = signal_number(name);
	char words[40];
	int err = background_read(folder, &background);

	if (number < 0)
		return text_refuse(why, room, number, "'%s' is none of int, term and kill", name);
	if (err)
		return background_no_run(folder, err, why, room);
	background_standing(folder, &background, words, sizeof(words));
	if (strcmp(words, "running") != 0 || !processes_live(background.agent, background.agent_started))
		return 0;
	if (kill(background.agent, number) < 0 && errno != ESRCH)
		return text_refuse(why, room, -errno, "the agent cannot be told to end: %s", strerror(errno));
	return 0;
}
