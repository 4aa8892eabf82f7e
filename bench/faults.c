/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the n-th system call of a kind fail, in a program and in all that it starts, threads included:
 *   faults STATUS SECONDS PREFIX KIND N ERRNO KEEP_ON LOG PROGRAM [ARGUMENT ...]
 * Only calls on files whose path begins with PREFIX count ("": all calls). N 0: none fails. KEEP_ON 1: neither does any later
 * one succeed. LOG ("": none): what PREFIX, one file, was written with, and when it was flushed. STATUS gets what happened.
 * The program under test is stopped only at the calls of `kinds` (seccomp(2), SECCOMP_RET_TRACE), so its timing stays its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef __x86_64__
#error the registers of this machine are not known
#endif

enum { TASKS = 4096, GRACE_S = 3, LOGGED_MOST = 1 << 24 };
enum where { NOWHERE, DESCRIPTOR, PATH, PATH_AT };

static const struct kind {
	const char *name;
	long number;
	enum where where;
} kinds[] = {
	{ "write", SYS_write, DESCRIPTOR },	    { "write", SYS_pwrite64, DESCRIPTOR },
	{ "write", SYS_writev, DESCRIPTOR },	    { "fsync", SYS_fsync, DESCRIPTOR },
	{ "fdatasync", SYS_fdatasync, DESCRIPTOR }, { "fallocate", SYS_fallocate, DESCRIPTOR },
	{ "ftruncate", SYS_ftruncate, DESCRIPTOR }, { "open", SYS_open, PATH },
	{ "open", SYS_openat, PATH_AT },	    { "mmap", SYS_mmap, NOWHERE },
	{ "clone", SYS_clone, NOWHERE },	    { "clone", SYS_clone3, NOWHERE },
	{ "clone", SYS_fork, NOWHERE },		    { "clone", SYS_vfork, NOWHERE },
	{ "rename", SYS_rename, PATH },		    { "rename", SYS_renameat, PATH_AT },
	{ "rename", SYS_renameat2, PATH_AT },	    { "mkdir", SYS_mkdir, PATH },
	{ "mkdir", SYS_mkdirat, PATH_AT },	    { "unlink", SYS_unlink, PATH },
	{ "unlink", SYS_unlinkat, PATH_AT },	    { "link", SYS_link, PATH },
	{ "link", SYS_linkat, PATH_AT },
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static struct task {
	pid_t tid;
	bool alive;
	const struct kind *logged; /* in this call, whose end is awaited */
	struct user_regs_struct entry;
	long long offset;
	unsigned char *data;
	size_t length;
} tasks[TASKS];

static struct options {
	const char *prefix, *kind;
	long n, keep_on;
	int error;
	FILE *status, *log;
} options;

static long seen;

static void die(const char *what)
{
	perror(what);
	exit(99);
}

static struct task *task_of(pid_t tid)
{
	struct task *unused = NULL;

	for (int i = 0; i < TASKS; i++) {
		if (tasks[i].tid == tid)
			return &tasks[i];
		if (!unused && !tasks[i].alive)
			unused = &tasks[i];
	}
	if (!unused) {
		fputs("too many tasks\n", stderr);
		exit(99);
	}
	free(unused->data);
	*unused = (struct task){ .tid = tid, .alive = true };
	return unused;
}

static int filter_calls(void)
{
	struct sock_filter code[KINDS * 2 + 2];
	size_t n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < KINDS; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)kinds[i].number, 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | (unsigned)i);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	struct sock_fprog program = { .len = (unsigned short)n, .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void read_string(pid_t tid, unsigned long long at, char *text, size_t room)
{
	size_t length = 0;

	while (length + 1 < room) {
		/* Not across a border of pages, behind which there may be nothing. */
		size_t part = 4096 - at % 4096 < room - 1 - length ? 4096 - at % 4096 : room - 1 - length;
		struct iovec here = { text + length, part }, there = { (void *)at, part };
		ssize_t n = process_vm_readv(tid, &here, 1, &there, 1, 0);

		if (n <= 0)
			break;
		if (memchr(text + length, 0, (size_t)n))
			return;
		length += (size_t)n;
		at += (size_t)n;
	}
	text[length] = '\0';
}

/* The path that a call is about, as far as it has one. */
static void find_path(pid_t tid, const struct kind *kind, const struct user_regs_struct *regs, char *path, size_t room)
{
	char link[64];

	path[0] = '\0';
	if (kind->where == PATH || kind->where == PATH_AT) {
		read_string(tid, kind->where == PATH ? regs->rdi : regs->rsi, path, room);
	} else if (kind->where == DESCRIPTOR) {
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", tid, (int)regs->rdi);
		ssize_t n = readlink(link, path, room - 1);

		path[n < 0 ? 0 : n] = '\0';
	}
}

static long long offset_of(pid_t tid, int fd)
{
	char path[64];
	long long offset = -1;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", tid, fd);
	FILE *file = fopen(path, "r");

	if (!file || fscanf(file, "pos: %lld", &offset) != 1)
		offset = -1;
	if (file)
		fclose(file);
	return offset;
}

static void begin_logged(struct task *task, const struct kind *kind, const struct user_regs_struct *regs)
{
	task->logged = kind;
	task->entry = *regs;
	task->length = 0;
	if (kind->number != SYS_write)
		return;
	size_t length = regs->rdx < LOGGED_MOST ? regs->rdx : LOGGED_MOST;

	free(task->data);
	task->data = malloc(length + 1);
	if (!task->data)
		die("malloc");
	struct iovec here = { task->data, length }, there = { (void *)regs->rsi, length };

	if (process_vm_readv(task->tid, &here, 1, &there, 1, 0) != (ssize_t)length)
		die("process_vm_readv");
	task->length = length;
	task->offset = offset_of(task->tid, (int)regs->rdi);
}

/* A line: w OFFSET HEX, t LENGTH (truncated), s (flushed; everything before is on the medium). */
static void end_logged(struct task *task)
{
	struct user_regs_struct regs;
	const struct kind *kind = task->logged;

	task->logged = NULL;
	if (ptrace(PTRACE_GETREGS, task->tid, NULL, &regs) < 0)
		return;
	long long result = (long long)regs.rax;

	if (result < 0)
		return;
	if (kind->number == SYS_write) {
		fprintf(options.log, "w %lld ", task->offset);
		for (long long i = 0; i < result; i++)
			fprintf(options.log, "%02x", task->data[i]);
		fputc('\n', options.log);
	} else if (kind->number == SYS_ftruncate) {
		fprintf(options.log, "t %lld\n", (long long)task->entry.rsi);
	} else if (kind->number == SYS_fdatasync || kind->number == SYS_fsync) {
		fputs("s\n", options.log);
	}
}

/* Whether the task is to be stopped again at the end of the call. */
static bool at_call(struct task *task, const struct kind *kind)
{
	struct user_regs_struct regs;
	char path[PATH_MAX];

	if (ptrace(PTRACE_GETREGS, task->tid, NULL, &regs) < 0)
		return false;
	find_path(task->tid, kind, &regs, path, sizeof(path));
	if (strncmp(path, options.prefix, strlen(options.prefix)))
		return false;
	if (!strcmp(kind->name, options.kind)) {
		seen++;
		if (options.n && (seen == options.n || (options.keep_on && seen > options.n))) {
			if (seen == options.n)
				fprintf(options.status, "given %d %s\n", (int)(kind->where == DESCRIPTOR ? (int)regs.rdi : -1), path);
			regs.orig_rax = (unsigned long long)-1;
			regs.rax = (unsigned long long)-(long long)options.error;
			ptrace(PTRACE_SETREGS, task->tid, NULL, &regs);
			return false;
		}
	}
	if (!options.log || kind->where != DESCRIPTOR)
		return false;
	begin_logged(task, kind, &regs);
	return true;
}

static void take_stop(pid_t tid, int status)
{
	struct task *task = task_of(tid);
	int event = status >> 16, signal = WSTOPSIG(status);
	int request = PTRACE_CONT;
	long passed = 0;

	if (event == PTRACE_EVENT_SECCOMP) {
		unsigned long number = 0;

		ptrace(PTRACE_GETEVENTMSG, tid, NULL, &number);
		if (number < KINDS && at_call(task, &kinds[number]))
			request = PTRACE_SYSCALL;
	} else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
		unsigned long child = 0;

		/* The parent may end before the child's first stop is seen, and then nobody would wait for the child. */
		if (!ptrace(PTRACE_GETEVENTMSG, tid, NULL, &child))
			task_of((pid_t)child);
	} else if (event == PTRACE_EVENT_STOP) {
		if (signal != SIGTRAP)
			request = PTRACE_LISTEN;
	} else if (!event && signal == (SIGTRAP | 0x80)) {
		if (task->logged)
			end_logged(task);
	} else if (!event) {
		passed = signal;
		if (task->logged)
			request = PTRACE_SYSCALL;
	}
	ptrace(request, tid, NULL, passed);
}

static bool tasks_know(pid_t tid)
{
	for (int i = 0; i < TASKS; i++)
		if (tid && tasks[i].tid == tid)
			return true;
	return false;
}

static void tick(int signal)
{
	(void)signal;
}

/* Who ends this program is of interest: a program under test may have done it. */
static void tell_sender(int signal, siginfo_t *info, void *context)
{
	(void)context;
	dprintf(STDERR_FILENO, "signal %d came from process %d%s\n", signal, (int)info->si_pid,
		tasks_know(info->si_pid) ? ", which is under test" : "");
	_exit(97);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int alive(void)
{
	int n = 0;

	for (int i = 0; i < TASKS; i++)
		n += tasks[i].alive;
	return n;
}

static void tell_left(void)
{
	for (int i = 0; i < TASKS; i++) {
		char path[64], name[64] = "?\n";

		if (!tasks[i].alive)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", tasks[i].tid);
		FILE *file = fopen(path, "r");

		if (file) {
			if (!fgets(name, sizeof(name), file))
				strcpy(name, "?\n");
			fclose(file);
		}
		fprintf(options.status, "left %d %s", tasks[i].tid, name);
	}
}

static void kill_all(void)
{
	for (int i = 0; i < TASKS; i++)
		if (tasks[i].alive)
			kill(tasks[i].tid, SIGKILL);
}

static void watch(pid_t first, double seconds)
{
	double give_up = now_s() + seconds;
	bool told = false;

	while (alive()) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid > 0 && WIFSTOPPED(status)) {
			take_stop(tid, status);
		} else if (tid > 0) {
			task_of(tid)->alive = false;
			if (tid == first) {
				fprintf(options.status, WIFSIGNALED(status) ? "signal %d\n" : "exit %d\n",
					WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
				give_up = now_s() + GRACE_S;
				first = 0;
			}
		} else if (errno == ECHILD) {
			break;
		}
		if (now_s() < give_up)
			continue;
		if (!told) {
			if (first)
				fputs("hung\n", options.status);
			tell_left();
		}
		told = true;
		kill_all();
	}
}

int main(int argc, char **argv)
{
	int go[2];
	char byte = 0;

	if (argc < 10) {
		fputs("usage: faults STATUS SECONDS PREFIX KIND N ERRNO KEEP_ON LOG PROGRAM [ARGUMENT ...]\n", stderr);
		return 99;
	}
	options = (struct options){ .prefix = argv[3], .kind = argv[4], .n = atol(argv[5]), .error = atoi(argv[6]), .keep_on = atol(argv[7]) };
	options.status = fopen(argv[1], "we");
	options.log = *argv[8] ? fopen(argv[8], "we") : NULL;
	if (!options.status || (*argv[8] && !options.log) || pipe2(go, O_CLOEXEC) < 0)
		die("faults");
	pid_t first = fork();

	if (!first) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1 || filter_calls() < 0)
			die("seccomp");
		execvp(argv[9], argv + 9);
		die(argv[9]);
	}
	close(go[0]);
	if (ptrace(PTRACE_SEIZE, first, NULL,
		   PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
			   PTRACE_O_TRACEVFORK) < 0) {
		perror("ptrace");
		kill(first, SIGKILL);
		return 98;
	}
	task_of(first);
	if (write(go[1], &byte, 1) != 1)
		die("write");
	struct sigaction action = { .sa_handler = tick };
	struct itimerval often = { { 0, 100000 }, { 0, 100000 } };

	struct sigaction ending = { .sa_sigaction = tell_sender, .sa_flags = SA_SIGINFO };

	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGTERM, &ending, NULL);
	sigaction(SIGHUP, &ending, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	watch(first, atof(argv[2]));
	fprintf(options.status, "calls %ld\n", seen);
	if (fclose(options.status) || (options.log && fclose(options.log)))
		die("close");
	return 0;
}
