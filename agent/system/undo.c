/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/undo.h"

#include "system/text.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/wait.h>

/*
 * A change is a line: a path, a tab and the value from before; no tab for a folder that was made. In place of the path, which
 * begins with a slash: the kind of a kernel object that was made, and behind the tab what it is called.
 */
static const char queue[] = "queue", semaphores[] = "semaphores";

enum { CHANGE_MOST = 512, JOURNAL_MOST = 256 * 1024, TRIES = 100 };

#define PAUSE_NS 20000000

extern char **environ;

static int spawn(pid_t *keeper, int journal)
{
	char *const arguments[] = { (char[]){ "rtproof-agent" }, (char[]){ "undo" }, NULL };
	posix_spawn_file_actions_t actions;
	int err = -posix_spawn_file_actions_init(&actions);

	if (err)
		return err;
	posix_spawn_file_actions_adddup2(&actions, journal, STDIN_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = -posix_spawn(keeper, "/proc/self/exe", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

int undo_open(struct undo *undo)
{
	int ends[2];

	undo->keeper = 0;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	(void)fcntl(ends[1], F_SETPIPE_SZ, JOURNAL_MOST); /* else it has the usual size, and says so when it is full */
	int err = spawn(&undo->keeper, ends[0]);

	undo->journal = ends[0];
	undo->line = ends[1];
	if (err) {
		close(ends[0]);
		close(ends[1]);
		undo->keeper = 0;
	}
	return err;
}

static int announce(const struct undo *undo, const char *path, const char *separator, const char *before)
{
	char change[CHANGE_MOST];
	int length = snprintf(change, sizeof(change), "%s%s%s\n", path, separator, before);

	if (length >= CHANGE_MOST)
		return -ENAMETOOLONG;
	if (write(undo->line, change, (size_t)length) == length)
		return 0;
	return errno == EAGAIN ? -ENOBUFS : -EIO;
}

const char *undo_error(int err)
{
	return err == -ENOBUFS ? "there are more changes than can be noted so that they are put back" : strerror(-err);
}

int undo_replace(struct undo *undo, const char *path, const char *value, const char *before)
{
	int err = announce(undo, path, "\t", before);

	return err ? err : text_write_file(path, value);
}

int undo_by(struct undo *undo, const char *path, const char *value, const char *taker)
{
	int err = text_write_file(path, value);

	return err ? err : announce(undo, taker, "\t", value);
}

int undo_append(struct undo *undo, const char *path, const char *value, const char *taker)
{
	int err = announce(undo, path, "\t", taker);

	return err ? err : text_append_file(path, value);
}

int undo_write(struct undo *undo, const char *path, const char *value)
{
	char line[CHANGE_MOST];
	int err = text_read_line(path, line, sizeof(line));

	if (err)
		return err;
	char *chosen = strchr(line, '['), *end = chosen ? strchr(chosen, ']') : NULL;

	if (end)
		*end = '\0';
	chosen = end ? chosen + 1 : line;
	return strcmp(chosen, value) ? undo_replace(undo, path, value, chosen) : 0;
}

int undo_mkdir(struct undo *undo, const char *path)
{
	int err = announce(undo, path, "", "");

	if (err)
		return err;
	return mkdir(path, 0700) < 0 ? -errno : 0;
}

int undo_queue(struct undo *undo, const char *name)
{
	return announce(undo, queue, "\t", name);
}

int undo_semaphores(struct undo *undo, int key)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", key);
	return announce(undo, semaphores, "\t", text);
}

/* One that somebody stopped goes on. False if it was killed. */
static bool wait_for(pid_t keeper)
{
	int status = 0;

	for (;;) {
		pid_t ended = waitpid(keeper, &status, WUNTRACED);

		if (ended == keeper && WIFSTOPPED(status))
			kill(keeper, SIGCONT);
		else if (ended >= 0 || errno != EINTR)
			return ended != keeper || !WIFSIGNALED(status);
	}
}

void undo_close(struct undo *undo)
{
	if (!undo->keeper)
		return;
	close(undo->line);
	if (!wait_for(undo->keeper) && !spawn(&undo->keeper, undo->journal))
		wait_for(undo->keeper);
	close(undo->journal);
	undo->keeper = 0;
}

static int remove_semaphores(int key)
{
	int id = semget(key, 0, 0);

	return id < 0 || semctl(id, 0, IPC_RMID) < 0 ? -errno : 0;
}

static int put_back_once(const char *path, const char *before)
{
	if (!before)
		return rmdir(path) < 0 ? -errno : 0;
	if (!strcmp(path, queue))
		return sys_result(syscall(SYS_mq_unlink, before));
	if (*before == '!' || !strncmp(before, "-:", 2)) /* one of several values of the file: the others stay */
		return text_append_file(path, before);
	return strcmp(path, semaphores) ? text_write_file(path, before) : remove_semaphores(atoi(before));
}

/* An agent that was killed may be about to let go of what is to be put back. */
static int put_back(const char *path, const char *before)
{
	int err = -EBUSY;

	for (int i = 0; i < TRIES && err == -EBUSY; i++) {
		if (i)
			sys_sleep(CLOCK_MONOTONIC, 0, PAUSE_NS);
		err = put_back_once(path, before);
	}
	return err == -ENOENT ? 0 : err;
}

/* Not before the agent has ended or says that it is done: if this process is killed until then, another one can read the pipe. */
static size_t read_journal(char *journal, size_t room)
{
	struct pollfd agent = { .fd = STDIN_FILENO };
	size_t length = 0;
	ssize_t n = 1;

	while (poll(&agent, 1, -1) < 0 && errno == EINTR)
		;

	while (length < room && n) {
		n = read(STDIN_FILENO, journal + length, room - length);
		if (n > 0)
			length += (size_t)n;
		else if (n < 0 && errno != EINTR)
			break;
	}
	return length;
}

/* The last line of the journal, cut off; NULL when there is none left. */
static char *last_change(char *journal, size_t *length)
{
	if (!*length)
		return NULL;
	journal[--*length] = '\0'; /* its newline */
	while (*length && journal[*length - 1] != '\n')
		--*length;
	return journal + *length;
}

int undo_main(void)
{
	static char few[16 * 1024];
	char *journal = malloc(JOURNAL_MOST);
	sigset_t all;
	int err = 0;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	size_t length = read_journal(journal ? journal : few, journal ? JOURNAL_MOST : sizeof(few));

	journal = journal ? journal : few;

	for (char *change = last_change(journal, &length); change; change = last_change(journal, &length)) {
		char *before = strchr(change, '\t');

		if (before)
			*before++ = '\0';
		if (put_back(change, before) < 0)
			err = EXIT_FAILURE;
	}
	return err;
}
