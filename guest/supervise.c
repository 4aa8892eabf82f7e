/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Bytes kept free for what matters more than a chatty job. */
#define RESERVE (1u << 20)

struct job {
	pid_t pid;
	int voice;
	uint32_t unheard;
};

static volatile sig_atomic_t child_ended;

static void note_child(int number)
{
	(void)number;
	child_ended = 1;
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void become(char *const arguments[], int input, int voice)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	dup2(input, 0);
	dup2(voice, 1);
	dup2(voice, 2);
	execvp(arguments[0], arguments);
	fprintf(stderr, "%s cannot be started: %s\n", arguments[0], strerror(errno));
	_exit(127);
}

static int start(struct job *job, char *const arguments[])
{
	int input[2], voice[2];
	if (pipe2(input, O_CLOEXEC) != 0 || pipe2(voice, O_CLOEXEC) != 0)
		return 0;
	job->voice = voice[0];
	job->pid = fork();
	if (job->pid == 0)
		become(arguments, input[0], voice[1]);
	close(input[0]);
	close(voice[1]);
	return job->pid > 0;
}

/* 0 once nobody can write any more, or nothing is there now. */
static int hear(struct mail *mail, struct job *job)
{
	char text[4096];
	ssize_t length = read(job->voice, text, sizeof text);
	if (length <= 0)
		return length < 0 && errno == EINTR;
	if (mail_room(mail, RESERVE) < (size_t)length || !mail_post(mail, MAIL_SAID, text, (size_t)length))
		job->unheard += (uint32_t)length;
	return 1;
}

static void obey(const struct job *job)
{
	char words[64] = "";
	if (read(STDIN_FILENO, words, sizeof words - 1) <= 0)
		return;
	if (strstr(words, "kill"))
		kill(-job->pid, SIGKILL);
	else if (strstr(words, "term"))
		kill(job->pid, SIGTERM);
	else if (strstr(words, "int"))
		kill(job->pid, SIGINT);
}

/* Until the program has ended: what it left running in the background may hold its voice open for ever. */
static void attend(struct mail *mail, struct job *job, const sigset_t *outside)
{
	struct pollfd ends[] = {{.fd = job->voice, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
	while (!child_ended) {
		if (ppoll(ends, 2, NULL, outside) <= 0)
			continue;
		if (ends[0].revents && !hear(mail, job))
			ends[0].fd = -1;
		if (ends[1].revents & POLLIN)
			obey(job);
		else if (ends[1].revents)
			ends[1].fd = -1;
	}
	fcntl(job->voice, F_SETFL, O_NONBLOCK);
	while (hear(mail, job))
		;
}

int supervise(struct mail *mail, char *const arguments[])
{
	sigset_t child, outside;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &outside);
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = note_child}, NULL);
	struct {
		int32_t code;
		uint32_t unheard;
		uint64_t begin_ns, end_ns;
	} end = {.begin_ns = now_ns()};
	struct job job = {0};
	int status;
	if (!start(&job, arguments))
		return 0;
	attend(mail, &job, &outside);
	waitpid(job.pid, &status, 0);
	end.end_ns = now_ns();
	end.code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	end.unheard = job.unheard;
	kill(-job.pid, SIGKILL);
	return mail_post(mail, MAIL_ENDED, &end, sizeof end);
}
