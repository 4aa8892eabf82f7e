/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and their keeper: with a PID namespace where that can be had, and then once more as a user who can't have one. */
#include "system/sys.h"

#include "loads/common/program.h"

#include "check.h"
#include "loads/common/start.h"
#include "system/processes.h"
#include "scratch.h"

#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { PATIENCE_S = 120, NOBODY = 65534, NICENESS = 5 };

static char why[512];

static int parse(const char *text, struct running_load *running)
{
	why[0] = '\0';
	int err = program_parse(text, running, why, sizeof(why));

	running->order.cpus = 1;
	return err;
}

static void refuse(const char *text, const char *sentence)
{
	struct running_load running;

	CHECK(parse(text, &running) == -EINVAL);
	if (strcmp(why, sentence))
		printf("%s: %s\n", text, why);
	CHECK(!strcmp(why, sentence));
}

static void refuse_to_start(const char *text, const char *sentence)
{
	struct running_load running;

	CHECK(parse(text, &running) == 0);
	CHECK(load_start(&running, why, sizeof(why)) < 0);
	if (strcmp(why, sentence))
		printf("%s: %s\n", text, why);
	CHECK(!strcmp(why, sentence));
	load_stop(&running);
}

static void a_command_is_words_with_quotes(void)
{
	static const char *const expected[] = { "a b", "it's", "", "x y", "\"", "end", NULL };
	struct running_load running;

	CHECK(parse("n:again=1,count=2,memory_mib=7 'a b'  it\\'s '' x\" y\" '\"' end ", &running) == 0);
	for (int i = 0; expected[i] || running.order.words[i]; i++)
		CHECK(expected[i] && running.order.words[i] && !strcmp(expected[i], running.order.words[i]));
	CHECK(!strcmp(running.name, "n") && running.order.values[PROGRAM_AGAIN] == 1);
	CHECK(running.order.values[PROGRAM_COUNT] == COUNT_LINES && running.order.values[PROGRAM_MEMORY] == 7);
}

/* Only what stands before the command: an @ of the command is its own. */
static void a_program_may_be_bound_to_cpus(void)
{
	struct running_load running;

	CHECK(parse("n:again=1@0,3 sh -c 'echo a@1'", &running) == 0);
	CHECK(running.bound && cpus_count(&running.cpus) == 2 && cpus_has(&running.cpus, 3) && !strcmp(running.name, "n@0,3"));
	CHECK(running.order.values[PROGRAM_AGAIN] == 1 && !strcmp(running.order.words[2], "echo a@1"));
	CHECK(parse("n sh a@1", &running) == 0 && !running.bound && !strcmp(running.name, "n"));
}

static void what_makes_no_sense_is_refused(void)
{
	char many[LOAD_GIVEN] = "n";

	for (int i = 0; i < LOAD_WORDS; i++)
		memcpy(many + 1 + 2 * i, " w", 3);
	refuse(many, "the command of program 'n' has too many words");
	refuse("n", "program 'n' needs a command: NAME[:key=value,...] COMMAND");
	refuse("n ", "program 'n' needs a command: NAME[:key=value,...] COMMAND");
	refuse("n sh -c 'x", "a quote is not closed in the command of program 'n'");
	refuse("n:speed=1 sh", "load 'n' has no option 'speed'");
	refuse("n:processes=0 sh", "option 'processes' of load 'n' takes a whole number from 1 to 100000");
	refuse_to_start("n rtproof-no-such", "load n can't run here: there is no program 'rtproof-no-such'");
	refuse_to_start("n /etc/passwd", "load n can't run here: there is no program '/etc/passwd'");
	refuse_to_start("n:needs=rtproof-nor-this sh", "load n can't run here: there is no program 'rtproof-nor-this'");
}

static void start(struct running_load *running, const char *text)
{
	CHECK(parse(text, running) == 0);
	int err = load_start(running, why, sizeof(why));

	if (err)
		printf("%s: %s\n", text, why);
	CHECK(err == 0 && running->pid > 0);
}

static void nothing_is_left(void)
{
	struct processes found;

	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	CHECK(errno == ECHILD);
	CHECK(processes_below(getpid(), INT_MAX, &found) == 0 && found.count == 0);
	free(found.each);
}

static void await_work(struct running_load *running, int64_t work)
{
	while (load_work(running) < work)
		sys_sleep(CLOCK_MONOTONIC, 0, 1000000);
}

static void each_kind_of_work_is_counted(void)
{
	static const struct {
		const char *text, *unit;
		int64_t work;
	} cases[] = {
		{ "n:count=0,again=1 true", "runs", 3 },
		{ "n:count=1 sh -c 'while :; do :; done'", "CPU ms", 20 },
		{ "n:count=1,again=1 sh -c 'i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done'", "CPU ms", 20 },
		{ "n:count=2 sh -c 'while :; do echo word; done'", "lines", 1000 },
		{ "n:count=3 sh -c 'while :; do echo word; done'", "bytes", 1000 },
		{ "n:count=0,again=1,restart=200ms sh -c 'sleep 0.01'", "runs", 3 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct running_load running;

		start(&running, cases[i].text);
		CHECK(!strcmp(load_unit(&running), cases[i].unit));
		await_work(&running, cases[i].work);
		load_stop(&running);
		nothing_is_left();
	}
}

static void await_death(struct running_load *running, const char *sentence)
{
	while (!load_died(running, why, sizeof(why)))
		sys_sleep(CLOCK_MONOTONIC, 0, 1000000);
	if (strncmp(why, sentence, strlen(sentence)))
		printf("%s\n", why);
	CHECK(!strncmp(why, sentence, strlen(sentence)));
	load_stop(running);
	nothing_is_left();
}

static void a_death_is_told_with_its_reason(void)
{
	static const char *const cases[][2] = {
		{ "n false", "load n died: it ended with exit code 1" },
		{ "n true", "load n died: it ended with exit code 0" },
		{ "n:again=1 sh -c 'echo one >&2; echo the last >&2; exit 3'", "load n died: it ended with exit code 3: the last" },
		{ "n sh -c 'kill -9 $$'", "load n died: signal 9 killed it" },
		{ "n:processes=3 sh -c 'for i in 1 2 3 4 5; do sleep 99 & done; wait'", "load n died: it wanted more than 3 processes" },
		{ "n:memory_mib=1 sh -c 'while :; do :; done'", "load n died: " }, /* not even its libraries fit */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct running_load running;

		start(&running, cases[i][0]);
		await_death(&running, cases[i][1]);
	}
}

/* By then the keeper has set itself up. */
static void await_first_process(const struct running_load *running)
{
	struct processes found = { NULL, 0 };

	while (!found.count) {
		free(found.each);
		sys_sleep(CLOCK_MONOTONIC, 0, 1000000);
		CHECK(processes_below(running->pid, INT_MAX, &found) == 0);
	}
	free(found.each);
}

static void check_priority_of_keeper(bool last, int expected)
{
	struct running_load running;

	CHECK(parse("n sleep 99", &running) == 0);
	running.order.last = last;
	CHECK(load_start(&running, why, sizeof(why)) == 0);
	await_first_process(&running);
	CHECK(sys_get_priority(running.pid) == (running.order.group ? 0 : expected));
	load_stop(&running);
}

/* Its keeper goes before it, and the load itself is as nice as who started it; nothing that measures may have to wait for either. */
static void only_the_keeper_is_urgent(void)
{
	static const char text[] = "n sh -c 'echo $(cut -d\" \" -f19,40,41 /proc/self/stat) $(cat /proc/self/timerslack_ns) >&2; exit 3'";
	struct running_load running;
	const bool may = sys_set_policy(0, SCHED_FIFO, 1) == 0;
	char expected[100];

	CHECK(sys_set_policy(0, 0, 0) == 0 && setpriority(PRIO_PROCESS, 0, NICENESS) == 0);
	check_priority_of_keeper(false, may);
	check_priority_of_keeper(true, 0);
	if (access("/proc/self/timerslack_ns", R_OK) < 0) /* Linux 4.6 */
		return;
	snprintf(expected, sizeof(expected), "load n died: it ended with exit code 3: %d 0 0 %d", NICENESS,
		 prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
	start(&running, text);
	await_death(&running, expected);
}

#define RUNAWAYS "n:count=2 sh -c 'for i in 1 2 3; do setsid sh -c \"sleep 98 & sleep 99\" & done; sleep 0.1; echo; exec sleep 97'"

/* Other sessions, and children whose parents have gone. */
static void runaways_end_with_it(void)
{
	struct running_load running;
	struct processes found;

	start(&running, RUNAWAYS);
	await_work(&running, 1);
	CHECK(processes_below(running.pid, INT_MAX, &found) == 0 && found.count >= 7);
	free(found.each);
	load_stop(&running);
	nothing_is_left();
}

static void runaways_end_when_the_program_is_killed(void)
{
	struct running_load running;
	struct processes found;

	start(&running, RUNAWAYS);
	await_work(&running, 1);
	CHECK(processes_below(running.pid, INT_MAX, &found) == 0);
	for (int i = 0; i < found.count; i++)
		if (found.each[i].parent == running.pid)
			kill(found.each[i].pid, SIGKILL);
	free(found.each);
	await_death(&running, "load n died: signal 9 killed it");
}

static void runaways_end_with_the_agent(void)
{
	pid_t agent = fork();
	int status;

	CHECK(agent >= 0);
	if (agent == 0) {
		struct running_load running;

		start(&running, RUNAWAYS);
		await_work(&running, 1);
		kill(getpid(), SIGKILL);
	}
	CHECK(waitpid(agent, &status, 0) == agent && WIFSIGNALED(status));
	nothing_is_left(); /* as their heir, we wait for them all */
}

/* In a PID namespace the kernel sees to it that nothing is left. */
static void runaways_end_with_the_keeper(void)
{
	struct running_load running;

	start(&running, RUNAWAYS);
	await_work(&running, 1);
	CHECK(kill(running.pid, SIGKILL) == 0);
	await_death(&running, "load n died");
}

static void files_go_with_it(void)
{
	struct running_load running;
	char path[FOLDER_PATH + 8];

	start(&running, "n:count=2,space_mib=1 sh -c 'mkdir -p \"$TMPDIR/a/b\" && echo x >\"$TMPDIR/a/b/c\"; echo; exec sleep 99'");
	snprintf(path, sizeof(path), "%s/a/b/c", running.folder.path);
	await_work(&running, 1);
	CHECK(access(path, F_OK) == 0);
	snprintf(path, sizeof(path), "%s", running.folder.path);
	load_stop(&running);
	nothing_is_left();
	CHECK(access(path, F_OK) < 0);
}

static void programs_are_kept(bool may_be_apart)
{
	each_kind_of_work_is_counted();
	a_death_is_told_with_its_reason();
	runaways_end_with_it();
	runaways_end_when_the_program_is_killed();
	runaways_end_with_the_agent();
	if (may_be_apart)
		runaways_end_with_the_keeper();
	only_the_keeper_is_urgent();
}

int main(void)
{
	sys_init();
	alarm(PATIENCE_S);
	a_program_may_be_bound_to_cpus();
	a_command_is_words_with_quotes();
	what_makes_no_sense_is_refused();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		SKIP("orphans can't be given to a process of one's choice here: Linux 3.4, and not under this emulator");
	scratch_file();
	CHECK(setenv("TMPDIR", scratch_folder, 1) == 0);
	files_go_with_it();
	pid_t trial = sys_clone(CLONE_NEWPID | SIGCHLD);

	if (trial == 0)
		_exit(0);
	nothing_is_left();
	programs_are_kept(trial > 0);
	if (trial > 0 && fork() == 0) { /* who then may not remove the scratch folder */
		CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 && setuid(NOBODY) == 0);
		programs_are_kept(false);
		_exit(EXIT_SUCCESS);
	}
	int status = 0;

	wait(&status);
	return WEXITSTATUS(status) || WIFSIGNALED(status) ? EXIT_FAILURE : EXIT_SUCCESS;
}
