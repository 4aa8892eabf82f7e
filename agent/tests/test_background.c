/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in the background: how they start, how they stand, which signals reach them, and when they are removed. */
#include "system/sys.h"

#include "background_command.h"
#include "system/text.h"

#include "background_run.h"
#include "check.h"

#include <sys/wait.h>

static bool is_there(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0;
}

static struct background read_run(const char *folder)
{
	struct background background;

	CHECK(background_read(folder, &background) == 0);
	return background;
}

static void a_run_tells_how_it_ended_and_is_removed(void)
{
	const char *folder = run_folder();
	char path[BACKGROUND_PATH], log[100] = "";

	start_run(folder, "ends");
	wait_for_standing(folder, "exit 3");
	CHECK(background_path(path, folder, "log"));
	CHECK(text_read_file(path, log, sizeof(log) - 1) > 0);
	CHECK(!strcmp(log, "begun\nsaid of ends\n"));
	CHECK(background_remove(folder) == 0);
	CHECK(!is_there(folder) && background_remove(folder) == 0); /* once more, if the answer was lost on its way */
}

/* The terminal or the connection through which it was started is not its own. */
static void a_run_has_a_session_of_its_own(void)
{
	const char *folder = run_folder();
	struct process waiter, agent;
	char why[256] = "";

	start_run(folder, "waits");
	struct background run = read_run(folder);

	CHECK(processes_look(run.waiter, &waiter) == 0 && waiter.session == run.waiter && waiter.session != getsid(0));
	CHECK(processes_look(run.agent, &agent) == 0 && agent.session == run.waiter && agent.started == run.agent_started);
	CHECK(!strcmp(standing(folder), "running"));
	CHECK(background_remove(folder) == -EBUSY && is_there(folder));
	CHECK(background_signal(folder, "int", why, sizeof(why)) == 0);
	wait_for_standing(folder, "exit 0");
	CHECK(background_remove(folder) == 0);
}

static void a_signal_that_ends_it_is_told(void)
{
	static const struct {
		const char *name, *standing;
	} signals[] = { { "term", "signal 15" }, { "kill", "signal 9" } };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		const char *folder = run_folder();
		char why[256] = "";

		start_run(folder, "waits");
		CHECK(background_signal(folder, "hup", why, sizeof(why)) == -EINVAL && strstr(why, "'hup' is none of int, term and kill"));
		CHECK(background_signal(folder, signals[i].name, why, sizeof(why)) == 0);
		wait_for_standing(folder, signals[i].standing);
		CHECK(background_signal(folder, signals[i].name, why, sizeof(why)) == 0); /* nobody is left */
		CHECK(background_remove(folder) == 0);
	}
}

static pid_t another_process(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void end_process(pid_t pid)
{
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

/* Numbers of processes are used again: when a process began tells it from an earlier one of its number. */
static void no_signal_reaches_another_process_of_that_number(void)
{
	const char *folder = run_folder();
	pid_t other = another_process();
	struct process found;
	char why[256] = "";

	CHECK(processes_look(other, &found) == 0);
	invent_run(folder, other, other, found.started - 1, "");
	CHECK(background_signal(folder, "kill", why, sizeof(why)) == 0);
	CHECK(waitpid(other, NULL, WNOHANG) == 0);
	CHECK(!strcmp(standing(folder), "vanished"));
	end_process(other);
	CHECK(background_remove(folder) == 0);
}

static void a_run_of_another_boot_is_none_that_goes_on(void)
{
	const char *folder = run_folder();
	pid_t other = another_process();
	struct process found;
	char why[256] = "";

	CHECK(processes_look(other, &found) == 0);
	invent_run(folder, other, other, found.started, "01234567-89ab-cdef-0123-456789abcdef");
	CHECK(!strcmp(standing(folder), "other-boot"));
	CHECK(background_signal(folder, "kill", why, sizeof(why)) == 0);
	CHECK(waitpid(other, NULL, WNOHANG) == 0);
	end_process(other);
	CHECK(background_remove(folder) == 0);
}

static void an_agent_whose_keeper_was_killed_goes_on(void)
{
	const char *folder = run_folder();
	char why[256] = "";

	start_run(folder, "waits");
	struct background run = read_run(folder);

	CHECK(kill(run.waiter, SIGKILL) == 0);
	for (int64_t end = clock_now_ns() + RUN_PATIENCE_NS; processes_live(run.waiter, run.waiter_started); usleep(1000))
		CHECK(clock_now_ns() < end);
	CHECK(!strcmp(standing(folder), "running"));
	CHECK(background_remove(folder) == -EBUSY);
	CHECK(background_signal(folder, "term", why, sizeof(why)) == 0);
	wait_for_standing(folder, "vanished"); /* nobody saw how it ended */
	CHECK(background_remove(folder) == 0);
}

static void what_cannot_be_started_is_refused(void)
{
	const char *folder = run_folder();
	char name[] = "rtproof-agent", word[] = "ends", why[256] = "", below[BACKGROUND_PATH], *arguments[] = { name, word, NULL };

	CHECK(background_path(below, folder, "below"));
	CHECK(background_start(below, arguments, why, sizeof(why)) == -ENOENT && strstr(why, "No such file"));
	CHECK(mkdir(folder, 0700) == 0);
	CHECK(background_start(folder, arguments, why, sizeof(why)) == -EEXIST && strstr(why, "File exists"));
	CHECK(rmdir(folder) == 0);
}

static void a_damaged_state_is_no_run(void)
{
	static const char *const states[] = { "", "\n", "12 3\n", "1 1 12 1 id\n", "12 1 0 1 id\n", "a b c d e\n" };
	const char *folder = run_folder();
	struct background background;
	char why[256] = "";

	CHECK(mkdir(folder, 0700) == 0);
	CHECK(background_read(folder, &background) == -ENOENT);
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		CHECK(background_write(folder, "state", states[i]) == 0);
		CHECK(background_read(folder, &background) == -EINVAL);
		CHECK(background_signal(folder, "int", why, sizeof(why)) == -EINVAL && strstr(why, "is damaged"));
		CHECK(background_remove(folder) == -EINVAL);
	}
	char path[BACKGROUND_PATH];

	CHECK(background_path(path, folder, "state") && unlink(path) == 0 && rmdir(folder) == 0);
}

static int command(int n, const char *const *given, char *why, size_t room)
{
	char words[6][300], *argv[7] = { NULL };

	for (int i = 0; i < n; i++) {
		snprintf(words[i], sizeof(words[i]), "%s", given[i]);
		argv[i] = words[i];
	}
	return background_main(n, argv, why, room);
}

/* Without its state a folder is that of no run, whatever is in it. */
static void what_is_no_run_is_not_removed(void)
{
	const char *folder = run_folder(), *const words[] = { "background", "remove", folder };
	char path[BACKGROUND_PATH], why[256] = "";

	CHECK(mkdir(folder, 0700) == 0);
	write_in_run(folder, "letter", "x", 1);
	CHECK(command(3, words, why, sizeof(why)) == -ENOENT && strstr(why, "cannot be removed"));
	CHECK(background_path(path, folder, "letter") && unlink(path) == 0);
	CHECK(command(3, words, why, sizeof(why)) == 0 && !is_there(folder)); /* what a removal leaves that was cut off */
}

static void words_that_make_no_sense_are_refused(void)
{
	static const char *const lines[][6] = {
		{ "background" },
		{ "background", "start", "/tmp/folder" },
		{ "background", "follow", "/tmp/folder", "host" },
		{ "background", "follow", "/tmp/folder", "host", "-1" },
		{ "background", "follow", "/tmp/folder", "host", "0", "words" },
		{ "background", "signal", "/tmp/folder" },
		{ "background", "remove" },
		{ "background", "other", "/tmp/folder" },
	};
	char why[512];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		int n = 0;

		while (n < 6 && lines[i][n])
			n++;
		CHECK(command(n, lines[i], why, sizeof(why)) == -EINVAL && strstr(why, "usage: background"));
	}
	const char *const nothing[] = { "background", "signal", run_folder(), "int" };

	CHECK(command(4, nothing, why, sizeof(why)) == -ENOENT && strstr(why, "there is no run in"));
}

int main(int argc, char **argv)
{
	act_as_agent(argc, argv);
	sys_init();
	no_signal_reaches_another_process_of_that_number();
	a_run_of_another_boot_is_none_that_goes_on();
	what_cannot_be_started_is_refused();
	a_damaged_state_is_no_run();
	what_is_no_run_is_not_removed();
	words_that_make_no_sense_are_refused();
	if (!runs_can_start())
		SKIP(CANNOT_START);
	a_run_tells_how_it_ended_and_is_removed();
	a_run_has_a_session_of_its_own();
	a_signal_that_ends_it_is_told();
	an_agent_whose_keeper_was_killed_goes_on();
	return EXIT_SUCCESS;
}
