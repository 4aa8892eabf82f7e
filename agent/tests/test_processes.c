/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/processes.h"
#include "system/text.h"

#include "check.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { PATIENCE_S = 60 };

static pid_t pause_in_child(bool own_session)
{
	int line[2];
	char byte;

	CHECK(pipe(line) == 0);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		if (own_session)
			CHECK(setsid() == getpid());
		pid_t below = fork(); /* a grandchild of the root */

		if (below > 0)
			CHECK(write(line[1], "", 1) == 1);
		for (;;)
			pause();
	}
	CHECK(read(line[0], &byte, 1) == 1);
	return pid;
}

static bool is_among(const struct processes *found, pid_t pid)
{
	for (int i = 0; i < found->count; i++)
		if (found->each[i].pid == pid)
			return true;
	return false;
}

static void all_that_descend_are_found_and_killed(void)
{
	pid_t first = pause_in_child(false), second = pause_in_child(true);
	struct processes found;

	CHECK(processes_below(getpid(), INT_MAX, &found) == 0);
	CHECK(found.count == 4 && is_among(&found, first) && is_among(&found, second) && !is_among(&found, getpid()));
	free(found.each);
	CHECK(processes_below(getpid(), 0, &found) == 0 && found.count > 0 && found.count < 4); /* it looks no further */
	free(found.each);
	CHECK(processes_below(second, INT_MAX, &found) == 0);
	CHECK(found.count == 1 && found.each[0].parent == second && found.each[0].session == second);
	free(found.each);
	CHECK(processes_kill(getpid()) == 4);
	CHECK(waitpid(first, NULL, 0) == first && waitpid(second, NULL, 0) == second);
}

/* Its session is what is left of a process that has ended. */
static void a_session_outlives_its_leader(void)
{
	struct processes found;
	int status;
	pid_t leader = pause_in_child(true);

	CHECK(kill(leader, SIGKILL) == 0 && waitpid(leader, &status, 0) == leader);
	CHECK(processes_below(leader, INT_MAX, &found) == 0);
	CHECK(found.count == 1 && found.each[0].session == leader);
	free(found.each);
	CHECK(processes_kill(leader) == 1);
}

/* qemu's user mode makes the line up: numbers, most of them 0, also where the state's letter should be. */
static bool is_made_up(void)
{
	char text[1024];

	CHECK(text_read_line("/proc/self/stat", text, sizeof(text)) == 0);
	const char *rest = strrchr(text, ')');

	return !rest || rest[1] != ' ' || rest[2] < 'A';
}

/* Lines of /proc/PID/stat: this thread's, and some made up. */

static struct taskstat stat;

static void a_thread_is_told_by_the_words_behind_its_name(void)
{
	CHECK(taskstat_parse("62 (irq/24-ACPI:Ged) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 -7 1 0 70 0 0 18446744073709551615 0 0 0 0 0 "
			     "0 0 2147483647 0 0 0 0 17 3 50 1 0 0 0 0 0\n", &stat));
	CHECK(!strcmp(stat.name, "irq/24-ACPI:Ged") && stat.of_kernel);
	CHECK(stat.priority == 50 && stat.policy == 1 && stat.cpu == 3 && stat.nice == -7);
}

static void a_name_may_be_anything(void)
{
	CHECK(taskstat_parse("7 (a) R 1 (b c) S 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 19 1 0 70 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 3\n",
			     &stat));
	CHECK(!strcmp(stat.name, "a) R 1 (b c") && !stat.of_kernel);
	CHECK(stat.priority == 0 && stat.policy == 3 && stat.cpu == 2 && stat.nice == 19);
}

/* In a list of threads each has one line, and a process of such a name can be found. */
static void a_name_of_two_lines_is_one_word(void)
{
	struct process self;
	char before[16];

	CHECK(taskstat_parse("7 (a\nb) R 1 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 19 1 0 70 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 3\n", &stat));
	CHECK(!strcmp(stat.name, "a?b"));
	CHECK(prctl(PR_GET_NAME, before) == 0 && prctl(PR_SET_NAME, "two\nlines") == 0);
	CHECK(is_made_up() || (processes_self(&self) == 0 && self.pid == getpid()));
	CHECK(prctl(PR_SET_NAME, before) == 0);
}

static void what_is_no_such_line_is_refused(void)
{
	CHECK(!taskstat_parse("", &stat) && !taskstat_parse("7 (name", &stat) && !taskstat_parse(")(", &stat));
	CHECK(!taskstat_parse("7 (name) S 1 2 3", &stat));
}

static void this_thread_is_where_it_is(void)
{
	CHECK(taskstat_read("/proc/self/stat", &stat) == 0);
	CHECK(!strncmp(stat.name, "test_processes", 14) && !stat.of_kernel && stat.cpu >= 0);
	CHECK(taskstat_read("/proc/0/stat", &stat) == -ENOENT);
	CHECK(taskstat_read("/proc/version", &stat) == -EPROTO);
}

int main(void)
{
	struct process self;

	sys_init();
	alarm(PATIENCE_S);
	a_thread_is_told_by_the_words_behind_its_name();
	a_name_may_be_anything();
	a_name_of_two_lines_is_one_word();
	what_is_no_such_line_is_refused();
	this_thread_is_where_it_is();
	if (processes_self(&self))
		SKIP("there is no /proc");
	if (is_made_up() || self.pid != getpid() || self.parent != getppid() || self.session != getsid(0))
		SKIP("/proc/self/stat is that of another PID namespace, or made up by an emulator");
	CHECK(self.pages > 0);
	all_that_descend_are_found_and_killed();
	a_session_outlives_its_leader();
	return EXIT_SUCCESS;
}
