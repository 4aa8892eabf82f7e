/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of files, put back by a process apart: this program, started again. */
#include "system/sys.h"

#include "system/processes.h"
#include "system/text.h"
#include "system/undo.h"

#include "check.h"
#include "scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char made[320];
static int done;

static void put(const char *text)
{
	FILE *file = fopen(scratch_path, "w");

	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static bool holds(const char *text)
{
	char line[128];

	CHECK(text_read_line(scratch_path, line, sizeof(line)) == 0);
	return !strcmp(line, text);
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static void skip_under_emulators(void)
{
	struct undo undo;
	int err = undo_open(&undo);

	if (err == -ENOEXEC)
		SKIP("a program of this processor can't start another: an emulator");
	CHECK(err == 0);
	undo_close(&undo);
}

static void change_all(struct undo *undo)
{
	CHECK(undo_open(undo) == 0);
	put("1000\n");
	CHECK(undo_write(undo, scratch_path, "250") == 0 && holds("250"));
	CHECK(undo_replace(undo, scratch_path, "NO_WORK", "WORK") == 0 && holds("NO_WORK"));
	CHECK(undo_replace(undo, scratch_path, "third", "second") == 0 && holds("third"));
	CHECK(undo_mkdir(undo, made) == 0 && is_there(made));
}

static bool change(struct undo *undo, int *err)
{
	char before[240];

	memset(before, 'b', sizeof(before) - 1);
	before[sizeof(before) - 1] = '\0';
	*err = undo_replace(undo, scratch_path, "after", before);
	return !*err;
}

static void many_changes_are_put_back_and_one_too_many_is_refused(void)
{
	struct undo undo;
	int err, n = 0;

	CHECK(undo_open(&undo) == 0);
	put("1000\n");
	CHECK(undo_write(&undo, scratch_path, "first") == 0);
	while (n < 80 && change(&undo, &err))
		n++;
	CHECK(n == 80 && undo_mkdir(&undo, made) == 0);
	while (n < 10000 && change(&undo, &err))
		n++;
	CHECK(err == -ENOBUFS && strstr(undo_error(err), "more changes than can be noted"));
	CHECK(!strcmp(undo_error(-ENOENT), strerror(ENOENT)));
	undo_close(&undo);
	CHECK(holds("1000") && !is_there(made));
}

static void all_is_put_back_last_first(void)
{
	struct undo undo;

	change_all(&undo);
	undo_close(&undo);
	CHECK(holds("1000") && !is_there(made));
	undo_close(&undo); /* and again: nothing */
}

/* What was refused is not taken back: it is somebody else's. */
static void another_file_takes_back_what_was_done(void)
{
	struct undo undo;
	int fd = open(made, O_WRONLY | O_CREAT | O_EXCL, 0600);
	char line[16];

	CHECK(fd >= 0 && close(fd) == 0);
	CHECK(undo_open(&undo) == 0);
	put("");
	CHECK(undo_by(&undo, scratch_path, "74", made) == 0 && holds("74"));
	CHECK(undo_by(&undo, "/proc/version", "90", made) < 0);
	undo_close(&undo);
	CHECK(text_read_line(made, line, sizeof(line)) == 0 && !strcmp(line, "74"));
	CHECK(unlink(made) == 0);
}

/* Such a file of tracefs would lose the values of others if it were written over. */
static void one_of_several_values_is_taken_back(void)
{
	struct undo undo;
	char text[64];

	CHECK(undo_open(&undo) == 0);
	put("theirs\n");
	CHECK(undo_append(&undo, scratch_path, "+our", "-:our") == 0);
	CHECK(undo_append(&undo, scratch_path, "+event", "!event") == 0);
	undo_close(&undo);
	int length = text_read_file(scratch_path, text, sizeof(text) - 1);

	CHECK(length > 0);
	text[length] = '\0';
	CHECK(!strcmp(text, "theirs\n+our+event!event-:our")); /* the last one first, each behind what is there */
}

static void the_value_in_brackets_is_the_present_one(void)
{
	struct undo undo;

	CHECK(undo_open(&undo) == 0);
	put("local [global] mono\n");
	CHECK(undo_write(&undo, scratch_path, "global") == 0 && holds("local [global] mono"));
	CHECK(undo_write(&undo, scratch_path, "mono") == 0 && holds("mono"));
	undo_close(&undo);
	CHECK(holds("global"));
}

/* The process apart is an orphan then, so its end is seen by what it holds: the end of a pipe. */
static void kill_an_agent(void (*make_changes)(struct undo *undo), bool with_keeper)
{
	int ends[2], status;
	char nothing;

	CHECK(pipe(ends) == 0);
	pid_t agent = fork();

	CHECK(agent >= 0);
	if (agent == 0) {
		struct undo undo;

		make_changes(&undo);
		if (with_keeper)
			kill(undo.keeper, SIGKILL);
		raise(SIGKILL);
	}
	CHECK(waitpid(agent, &status, 0) == agent && WIFSIGNALED(status));
	CHECK(close(ends[1]) == 0 && read(ends[0], &nothing, 1) == 0 && close(ends[0]) == 0);
}

static void a_killed_agent_is_cleaned_up_behind(void)
{
	kill_an_agent(change_all, false);
	CHECK(holds("1000") && !is_there(made));
}

/* The changes stay in the file, so another process can put them back. */
static void a_keeper_that_was_killed_or_stopped_does_no_harm(void)
{
	struct undo undo;

	change_all(&undo);
	CHECK(kill(undo.keeper, SIGKILL) == 0);
	undo_close(&undo);
	CHECK(holds("1000") && !is_there(made));
	change_all(&undo);
	CHECK(kill(undo.keeper, SIGSTOP) == 0);
	undo_close(&undo);
	CHECK(holds("1000") && !is_there(made));
}

static void reach_nothing(void)
{
}

static void change_twice(struct undo *undo)
{
	CHECK(undo_open(undo) == 0);
	put("1000\n");
	CHECK(undo_write(undo, scratch_path, "250") == 0 && undo_write(undo, scratch_path, "125") == 0);
	CHECK(undo_mkdir(undo, made) == 0);
}

static void the_next_agent_restores_only_what_nobody_has_changed_since(void)
{
	kill_an_agent(change_twice, true);
	CHECK(holds("125") && is_there(made));
	undo_sweep(reach_nothing, &done);
	CHECK(holds("1000") && !is_there(made));
	kill_an_agent(change_twice, true);
	put("somebody's");
	undo_sweep(reach_nothing, &done);
	CHECK(holds("somebody's") && !is_there(made));
	put("125");
	undo_sweep(reach_nothing, &done); /* once is enough */
	CHECK(holds("125"));
}

static void the_next_agent_leaves_a_living_one_alone(void)
{
	struct undo undo;

	change_twice(&undo);
	undo_sweep(reach_nothing, &done);
	CHECK(holds("125") && is_there(made));
	undo_close(&undo);
	CHECK(holds("1000") && !is_there(made));
}

/* Anybody may put a file in /tmp. The owner's number is no process: Linux gives none so high. */
static void only_a_file_of_its_own_is_believed(void)
{
	static const mode_t modes[] = { 0600, 0620, 0602, 0644 };
	char path[96], boot[BOOT_ID_ROOM];

	boot_id(boot);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		snprintf(path, sizeof(path), "/tmp/rtproof-undo-4194304-%d-%.8s-0", (int)getpid(), boot);
		FILE *file = fopen(path, "w");

		CHECK(file && fprintf(file, "%s\told\tnew\n%s\ttorn\tnewx", scratch_path, scratch_path) > 0 && fclose(file) == 0);
		CHECK(chmod(path, modes[i]) == 0);
		put("new");
		undo_sweep(reach_nothing, &done);
		CHECK(holds(i ? "new" : "old") && is_there(path) == (i > 0));
		unlink(path);
	}
}

static void kernel_objects_are_removed(void)
{
	const int key = getpid() | 0x51000000;
	struct undo undo;

	CHECK(undo_open(&undo) == 0);
	CHECK(undo_semaphores(&undo, key, -1) == 0);
	if (semget(key, 1, IPC_CREAT | IPC_EXCL | 0600) < 0)
		CHECK(errno == ENOSYS);
	CHECK(undo_queue(&undo, "rtproof-test") == 0);
	long queue = syscall(SYS_mq_open, "rtproof-test", O_RDWR | O_CREAT, 0600, (void *)0);

	CHECK(queue >= 0 ? close((int)queue) == 0 : errno == ENOSYS);
	undo_close(&undo);
	CHECK(semget(key, 0, 0) < 0);
	CHECK(syscall(SYS_mq_unlink, "rtproof-test") < 0);
}

static void what_cannot_be_changed_says_why(void)
{
	char longest[600];
	struct undo undo;

	CHECK(undo_open(&undo) == 0);
	CHECK(undo_write(&undo, made, "1") == -ENOENT);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CHECK(undo_mkdir(&undo, longest) == -ENAMETOOLONG);
	CHECK(mkdir(made, 0700) == 0 && undo_mkdir(&undo, made) == -EEXIST);
	undo_close(&undo);
	CHECK(rmdir(made) == 0); /* it was somebody else's */
}

/* In a file of the scratch folder, which no kernel rounds. */
static void set_two(struct undo *undo)
{
	char before[SETTING_MOST], shown[SETTING_MOST];

	CHECK(undo_open_settings(undo) == 0);
	put("1000\n");
	CHECK(undo_set(undo, scratch_path, "250", before, shown) == 0 && !strcmp(before, "1000") && !strcmp(shown, "250"));
	CHECK(undo_set(undo, scratch_path, "125", before, shown) == 0 && !strcmp(before, "250") && holds("125"));
}

static void set_two_and_say_so(struct undo *undo)
{
	set_two(undo);
	CHECK(undo_applied(undo) == 0);
}

static int journals(void)
{
	return undo_sweep(reach_nothing, &done);
}

static void settings_are_restored_by_whoever_is_left(void)
{
	struct undo undo;

	set_two_and_say_so(&undo);
	CHECK(undo.lasting);
	undo_close(&undo);
	CHECK(holds("1000") && journals() == 0);
	kill_an_agent(set_two_and_say_so, false);
	CHECK(holds("1000") && journals() == 0);
	kill_an_agent(set_two_and_say_so, true);
	CHECK(holds("125") && journals() == 1 && done == 1 && holds("1000") && journals() == 0);
	kill_an_agent(set_two, true);
	CHECK(undo_for_user(reach_nothing) == EXIT_SUCCESS && holds("1000"));
	CHECK(undo_for_user(reach_nothing) == EXIT_SUCCESS); /* there is nothing */
}

static void set_two_before_somebody_else(struct undo *undo)
{
	set_two_and_say_so(undo);
	put("somebody's");
}

/* The keeper can't say so; the next agent does, once. */
static void a_setting_that_somebody_changed_since_stays_and_is_told(void)
{
	kill_an_agent(set_two_before_somebody_else, false);
	CHECK(holds("somebody's") && journals() == 1 && done == 0 && holds("somebody's") && journals() == 0);
}

/* The last value may have been rounded before the agent could read it back. */
static void what_a_kernel_made_of_the_last_value_is_restored_as_well(void)
{
	struct undo undo;

	set_two(&undo);
	put("128");
	undo_close(&undo);
	CHECK(holds("1000") && journals() == 0);
}

/* Otherwise the second would restore the value of the first, long after the first restored its own. */
static void two_runs_never_set_the_same(void)
{
	char before[SETTING_MOST], shown[SETTING_MOST];
	struct undo first, second;

	put("1000\n");
	CHECK(undo_open_settings(&first) == 0 && undo_open_settings(&second) == 0);
	CHECK(undo_set(&first, scratch_path, "250", before, shown) == 0);
	CHECK(undo_set(&second, scratch_path, "125", before, shown) == -EALREADY && strstr(undo_error(-EALREADY), "another run"));
	CHECK(undo_set(&second, scratch_path, "250", before, shown) == -EALREADY); /* it would not last */
	undo_close(&first);
	CHECK(holds("1000") && undo_set(&second, scratch_path, "125", before, shown) == 0 && !strcmp(before, "1000") && holds("125"));
	undo_close(&second);
	CHECK(holds("1000") && journals() == 0);
}

/* Nothing is restored from what no agent wrote, or what is not whole; and what is whole is restored. */
static void a_damaged_journal_does_no_harm(void)
{
	static const char *const around[][2] = { { "", "\told\tnew\n" }, { "\n\n", "\told\tnew\ntorn" }, { "", "\told\tnew" }, { "nothing", "" }, { "", "\told\n" } };
	char path[96], boot[BOOT_ID_ROOM];

	boot_id(boot);
	for (int i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "/tmp/rtproof-settings-4194304-%d-%.8s-0", (int)getpid(), boot);
		FILE *file = fopen(path, "w");

		CHECK(file && fprintf(file, "%s%s%s", around[i][0], scratch_path, around[i][1]) > 0 && fclose(file) == 0);
		CHECK(chmod(path, 0600) == 0);
		put("new");
		CHECK(journals() == 1 && holds(i < 2 ? "old" : "new"));
		unlink(path);
		CHECK(symlink(scratch_path, path) == 0 && journals() == 0 && holds(i < 2 ? "old" : "new") && unlink(path) == 0);
	}
}

/* Where only root writes, a file that others can read tells of settings all the same. */
static void a_journal_that_cannot_be_used_is_told(void)
{
	char path[96], boot[BOOT_ID_ROOM];

	boot_id(boot);
	(void)mkdir("/var/lib/rtproof", 0700);
	snprintf(path, sizeof(path), "/var/lib/rtproof/rtproof-settings-4194304-%d-%.8s-0", (int)getpid(), boot);
	int fd = open(path, O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return; /* not root */
	CHECK(fchmod(fd, 0644) == 0 && close(fd) == 0);
	CHECK(undo_for_user(reach_nothing) == EXIT_FAILURE && is_there(path) && unlink(path) == 0);
	(void)rmdir("/var/lib/rtproof");
}

/* Other than what a run set itself. */
static void what_the_kernel_made_of_it_is_restored(void)
{
	struct undo undo;

	CHECK(undo_open_settings(&undo) == 0 && undo_note(&undo, scratch_path, "1000", UNDO_ANY) == 0);
	put("moved");
	CHECK(undo_applied(&undo) == 0);
	undo_close(&undo);
	CHECK(holds("1000") && journals() == 0);
}

static void set_two_before_a_cpu_goes(struct undo *undo)
{
	set_two_and_say_so(undo);
	CHECK(unlink(scratch_path) == 0);
}

/* A CPU that went off line takes its files along, and may bring them back as the run left them. */
static void what_has_vanished_is_left_to_the_next_agent(void)
{
	kill_an_agent(set_two_before_a_cpu_goes, false);
	CHECK(!is_there(scratch_path) && journals() == 1 && !is_there(scratch_path) && journals() == 0);
	kill_an_agent(set_two_before_a_cpu_goes, false);
	put("125");
	CHECK(journals() == 1 && done == 1 && holds("1000") && journals() == 0);
}

static void remove_journals(const char *folder)
{
	DIR *place = opendir(folder);
	struct dirent *entry;

	while (place && (entry = readdir(place)))
		if (!strncmp(entry->d_name, "rtproof-settings-", 17))
			CHECK(unlinkat(dirfd(place), entry->d_name, 0) == 0);
	if (place)
		closedir(place);
}

static void set_what_cannot_be_restored(struct undo *undo)
{
	set_two_and_say_so(undo);
	CHECK(undo_note(undo, "cpus:1:1", "0", "0") == 0); /* no such thread any more: nothing to do */
	CHECK(undo_note(undo, "nothing:of the kind", "0", "1") == 0);
}

static void what_cannot_be_restored_stays_in_the_journal(void)
{
	kill_an_agent(set_what_cannot_be_restored, false);
	CHECK(holds("1000"));
	CHECK(journals() == 1 && done == 0 && undo_for_user(reach_nothing) == EXIT_FAILURE);
	remove_journals("/var/lib/rtproof");
	remove_journals("/run");
	CHECK(journals() == 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], UNDO_KEEPER))
		return undo_main();
	sys_init();
	CHECK(scratch_file());
	snprintf(made, sizeof(made), "%s.d", scratch_path);
	skip_under_emulators();
	all_is_put_back_last_first();
	many_changes_are_put_back_and_one_too_many_is_refused();
	another_file_takes_back_what_was_done();
	one_of_several_values_is_taken_back();
	the_value_in_brackets_is_the_present_one();
	a_killed_agent_is_cleaned_up_behind();
	a_keeper_that_was_killed_or_stopped_does_no_harm();
	the_next_agent_restores_only_what_nobody_has_changed_since();
	the_next_agent_leaves_a_living_one_alone();
	only_a_file_of_its_own_is_believed();
	kernel_objects_are_removed();
	what_cannot_be_changed_says_why();
	settings_are_restored_by_whoever_is_left();
	a_setting_that_somebody_changed_since_stays_and_is_told();
	what_a_kernel_made_of_the_last_value_is_restored_as_well();
	two_runs_never_set_the_same();
	a_damaged_journal_does_no_harm();
	a_journal_that_cannot_be_used_is_told();
	what_the_kernel_made_of_it_is_restored();
	what_has_vanished_is_left_to_the_next_agent();
	what_cannot_be_restored_stays_in_the_journal();
	return EXIT_SUCCESS;
}
