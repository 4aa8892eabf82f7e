/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the background whose agent is this test program once more: background_start() starts whatever program it is part of.
 * So main() of a test begins with act_as_agent().
 */
#ifndef RTPROOF_TESTS_BACKGROUND_RUN_H
#define RTPROOF_TESTS_BACKGROUND_RUN_H

#include "background/background_folder.h"
#include "background/waiter.h"
#include "system/clock.h"
#include "system/processes.h"

#include "check.h"
#include "scratch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { RUN_EXIT = 3 };

#define RUN_PATIENCE_NS (60 * NS_PER_SECOND)

static volatile sig_atomic_t interrupted;

static inline void note_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* With "ends" it ends with RUN_EXIT, with "waits" when it is told to; an interrupt is a good end. */
static inline void act_as_agent(int argc, char **argv)
{
	if (argc < 2)
		return;
	sigset_t held, before;

	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigprocmask(SIG_BLOCK, &held, &before);
	signal(SIGINT, note_interrupt);
	printf("begun\n");
	fflush(stdout);
	fprintf(stderr, "said of %s\n", argv[1]);
	if (!strcmp(argv[1], "ends"))
		_exit(RUN_EXIT);
	while (!interrupted)
		sigsuspend(&before);
	_exit(0);
}

#define CANNOT_START "this emulator starts no program of its kind: what takes a real run was left out"

/* False in an emulator of one program, unless the kernel knows the emulator (binfmt_misc). */
static inline bool runs_can_start(void)
{
	char name[] = "rtproof-agent", word[] = "ends", *arguments[] = { name, word, NULL };
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

		if (nothing < 0 || dup2(nothing, STDOUT_FILENO) < 0 || dup2(nothing, STDERR_FILENO) < 0)
			_exit(EXIT_FAILURE);
		execv("/proc/self/exe", arguments);
		_exit(EXIT_FAILURE);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == RUN_EXIT;
}

/* A folder that is not there yet. */
static inline const char *run_folder(void)
{
	return scratch_file();
}

/* Until the agent has begun: only then it is ready for an interrupt. */
static inline void start_run(const char *folder, const char *what)
{
	char name[] = "rtproof-agent", word[16], why[256] = "", path[BACKGROUND_PATH], *arguments[] = { name, word, NULL };
	struct stat log = { .st_size = 0 };

	snprintf(word, sizeof(word), "%s", what);
	int err = background_start(folder, arguments, why, sizeof(why));

	if (err)
		printf("%s\n", why);
	CHECK(err == 0 && background_path(path, folder, "log"));
	for (int64_t end = clock_now_ns() + RUN_PATIENCE_NS; !log.st_size; usleep(1000))
		CHECK(clock_now_ns() < end && stat(path, &log) == 0);
}

static inline const char *standing(const char *folder)
{
	static char words[40];
	struct background background;

	CHECK(background_read(folder, &background) == 0);
	background_standing(folder, &background, words, sizeof(words));
	return words;
}

static inline void wait_for_standing(const char *folder, const char *words)
{
	for (int64_t end = clock_now_ns() + RUN_PATIENCE_NS; strcmp(standing(folder), words) != 0; usleep(1000))
		CHECK(clock_now_ns() < end);
}

static inline void write_in_run(const char *folder, const char *name, const char *content, size_t length)
{
	char path[BACKGROUND_PATH];

	CHECK(background_path(path, folder, name));
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, content, length) == (ssize_t)length && close(fd) == 0);
}

/* A run that somebody else has started: of these processes, in this boot; "" is the present one. */
static inline void invent_run(const char *folder, pid_t waiter, pid_t agent, int64_t agent_started, const char *boot)
{
	char state[160], now[BOOT_ID_ROOM];

	boot_id(now);
	snprintf(state, sizeof(state), "%d 1 %d %lld %s\n", (int)waiter, (int)agent, (long long)agent_started, boot[0] ? boot : now);
	CHECK(mkdir(folder, 0700) == 0);
	CHECK(background_write(folder, "state", state) == 0);
}

#endif
