/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exec probe: another tool of the target measures, such as cyclictest. This thread starts it, keeps what it prints, with the
 * time at which each line came, and ends it. The desk makes the figures of it: here nobody knows what the lines mean.
 */
#include "system/sys.h"

#include "loads/load.h"
#include "measure/worker.h"
#include "system/clock.h"
#include "system/processes.h"
#include "system/text.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { RUN };
enum { STREAMS = 2, WORDS = 64, LOOK_MS = 200, GRACE_NS = 1500000000, KEPT_MOST = 15 << 20 };

struct tool {
	pid_t pid; /* 0: there is none any more */
	int status;
	int64_t started;
	size_t kept;
	struct pollfd streams[STREAMS];
	char *text;                    /* holds the words */
	char *words[WORDS], last[128]; /* last: the line that it printed last */
};

static const struct probe_option options[] = {
	{ "run", "the command: + stands for a space, ; for a comma" },
	{ "tool", "its name, for the desk" },
	{ NULL, NULL },
};

static int exec_check(const struct method *method, const char *const *values, int64_t period_ns, char *why, size_t room)
{
	char name[256] = "";

	(void)method;
	(void)period_ns;
	if (values[RUN])
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(values[RUN], "+"), values[RUN]);
	if (!*name)
		return text_refuse(why, room, -EINVAL, "probe 'exec' needs run=COMMAND");
	return program_is_there(name) ? 0 : text_refuse(why, room, -EINVAL, "there is no program '%s' in the PATH of the target", name);
}

/* A line of the record: the time in ms, a letter that says what it is, the text. */
static void keep(struct worker *worker, char letter, const char *text, size_t length)
{
	struct tool *tool = worker->state;
	char head[32];
	size_t n = (size_t)snprintf(head, sizeof(head), "%lld %c ", (long long)(clock_now_ns() / 1000000), letter);

	worker_say(worker, head, n);
	worker_say(worker, text, length);
	worker_say(worker, "\n", 1);
	tool->kept += n + length + 1;
}

static void keep_number(struct worker *worker, char letter, int number)
{
	char text[16];

	keep(worker, letter, text, (size_t)snprintf(text, sizeof(text), "%d", number));
}

/* One reading of a stream. A capital letter marks a piece whose line goes on in the next one. False: nothing is there now. */
static bool take_text(struct worker *worker, int stream)
{
	struct tool *tool = worker->state;
	char text[4096], *at = text;
	ssize_t got = read(tool->streams[stream].fd, text, sizeof(text));

	for (size_t left = got > 0 ? (size_t)got : 0; left;) {
		const char *end = memchr(at, '\n', left);
		size_t length = end ? (size_t)(end - at) : left;

		keep(worker, (end ? "oe" : "OE")[stream], at, length);
		if (length)
			snprintf(tool->last, sizeof(tool->last), "%.*s", (int)length, at);
		at += length + (end != NULL);
		left -= length + (end != NULL);
	}
	if (!got) /* nobody has its other end any more */
		tool->streams[stream].fd = -1;
	return got > 0;
}

/* Once it has ended, nothing of its group stays, and all that it printed is taken. */
static void look(struct worker *worker)
{
	struct tool *tool = worker->state;
	siginfo_t info;

	poll(tool->streams, STREAMS, LOOK_MS);
	memset(&info, 0, sizeof(info));
	waitid(P_PID, (id_t)tool->pid, &info, WEXITED | WNOHANG | WNOWAIT);
	if (info.si_pid)
		kill(-tool->pid, SIGKILL);
	for (int i = 0; i < STREAMS; i++)
		while (take_text(worker, i) && info.si_pid && tool->kept <= KEPT_MOST)
			;
	if (!info.si_pid)
		return;
	waitpid(tool->pid, &tool->status, 0);
	tool->pid = 0;
	keep_number(worker, 'x', WIFSIGNALED(tool->status) ? -WTERMSIG(tool->status) : WEXITSTATUS(tool->status));
}

/* Its signals are as for any new process. */
static void become(const struct tool *tool, const int *ends)
{
	setpgid(0, 0);
	load_default_signals();
	dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
	dup2(ends[0], STDOUT_FILENO);
	dup2(ends[1], STDERR_FILENO);
	execvp(tool->words[0], tool->words);
	perror(tool->words[0]);
	_exit(127);
}

static int open_streams(struct tool *tool, int *ends)
{
	for (int i = 0; i < STREAMS; i++) {
		int both[2];

		if (pipe2(both, O_CLOEXEC) < 0)
			return -errno;
		tool->streams[i] = (struct pollfd){ .fd = both[0], .events = POLLIN };
		ends[i] = both[1];
		fcntl(both[0], F_SETFL, O_NONBLOCK);
	}
	return 0;
}

static void cut_words(struct tool *tool)
{
	char *rest = NULL;

	for (char *at = tool->text; *at; at++)
		if (*at == ';')
			*at = ',';
	tool->words[0] = strtok_r(tool->text, "+", &rest);
	for (int i = 1; i < WORDS - 1 && (tool->words[i] = strtok_r(NULL, "+", &rest)); i++)
		;
}

/* The tool has its own warm-up, or none, so this one's ends at once. It measures, so this thread goes out of its way. */
static int exec_open(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	struct tool *tool = calloc(1, sizeof(*tool));
	int ends[STREAMS] = { -1, -1 };
	struct process begun = { .started = INT64_MAX };

	(void)method;
	(void)first_due_ns;
	(void)period_ns;
	worker->state = tool;
	if (tool)
		tool->text = strdup(worker->options[RUN]);
	if (!tool || !tool->text)
		return -ENOMEM;
	cut_words(tool);
	worker->warmup_ns = 0;
	worker->policy = POLICY_OTHER;
	worker->priority = 0;
	sys_set_policy(0, POLICY_OTHER, 0);
	cpus_set_affinity(0, worker->cpus);
	int err = open_streams(tool, ends);

	if (err)
		return err;
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	tool->pid = load_spawn();
	if (tool->pid == 0)
		become(tool, ends);
	for (int i = 0; i < STREAMS; i++)
		close(ends[i]);
	if (tool->pid < 0)
		return tool->pid;
	setpgid(tool->pid, tool->pid);
	processes_look(tool->pid, &begun);
	tool->started = begun.started;
	keep_number(worker, 'p', tool->pid);
	return 0;
}

static int exec_take(struct worker *worker, struct activation *activation)
{
	struct tool *tool = worker->state;
	int status;

	(void)activation;
	look(worker);
	worker->failed_at = "run the tool";
	if (tool->kept > KEPT_MOST) {
		snprintf(worker->why, sizeof(worker->why), "it printed more than %d MiB", KEPT_MOST >> 20);
		return -EFBIG;
	}
	if (tool->pid)
		return -EINTR;
	worker->ended = true;
	status = tool->status;
	snprintf(worker->why, sizeof(worker->why), "%s%d: %s", WIFSIGNALED(status) ? "killed by signal " : "exit code ",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), tool->last);
	return status ? -ECHILD : -EINTR;
}

/* What it started in a session of its own became our child when it ended. Our own such children are older. */
static void end_escaped(const struct tool *tool)
{
	struct processes found;
	struct process self;

	if (processes_self(&self) || processes_below(self.pid, INT_MAX, &found))
		return;
	for (int i = 0; i < found.count; i++) {
		const struct process *each = &found.each[i];

		if (each->parent != self.pid || each->session == self.session || each->started < tool->started)
			continue;
		processes_kill(each->pid);
		kill(each->pid, SIGKILL);
	}
	free(found.each);
}

/* Asked to end, some put back what they changed, and print what they have. */
static void exec_close(struct worker *worker)
{
	struct tool *tool = worker->state;
	int64_t until_ns = clock_now_ns() + GRACE_NS;

	worker->left_ns = 0;
	if (!tool)
		return;
	if (tool->pid > 0)
		kill(-tool->pid, SIGINT);
	while (tool->pid > 0) {
		if (clock_now_ns() > until_ns)
			kill(-tool->pid, SIGKILL);
		look(worker);
	}
	end_escaped(tool);
	for (int i = 0; i < STREAMS; i++)
		if (tool->streams[i].fd > 0)
			close(tool->streams[i].fd);
	free(tool->text);
	free(tool);
}

static const struct method tool = {
	.name = "tool",
	.help = "whatever the tool does; its values are in its output",
	.external = true,
	.single = true,
	.no_deadline = true,
	.collects = true,
	.no_timer = true,
};
static const struct method *const methods[] = { &tool, NULL };

const struct probe probe_exec = {
	.name = "exec",
	.help = "another tool of the target measures, such as cyclictest or rtla",
	.field = "latency",
	.unit = "ns",
	.methods = methods,
	.options = options,
	.check = exec_check,
	.open = exec_open,
	.take = exec_take,
	.close = exec_close,
};
