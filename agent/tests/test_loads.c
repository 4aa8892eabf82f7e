/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "loads/load.h"

#include "loads/common/keeper.h"
#include "loads/common/start.h"
#include "system/text.h"

#include "check.h"
#include "scratch.h"

#include <dirent.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PATIENCE_S = 60 };

static const char *const orders[] = {
	"churn:jobs=2,mib=1",
	"comms:pairs=2",
	"cpu:workers=2",
	"dd:workers=2,mib=2",
	"files:workers=2,mib=1",
	"files:workers=1,mib=1,kib=64,sync=1",
	"fork:workers=2,children=2,mib=1",
	"irqmix:workers=2",
	"lsr:workers=2",
	"lsr:workers=1,rate=500",
	"mem:workers=2,mib=2",
	"mem:workers=1,way=random",
	"mmap:workers=2,mib=2",
	"net:udp=1,tcp=1",
	"net:udp=0,tcp=2",
	"pingflood:workers=2",
	"proc:workers=2",
	"rtc",
	"sched:groups=2,pairs=2,bytes=10",
	"sched:groups=1,pairs=2,restart=30s",
	"sched:groups=1,pairs=2,rate=1000",
	"serve:streams=2,mib=1,pause=0",
	"timers:workers=2,timers=20,us=1000",
	"tmpfs:workers=2,mib=2",
	"zero:workers=2",
};

enum { ORDERS = sizeof(orders) / sizeof(*orders) };

static bool runs_here(const char *text)
{
	struct running_load running;
	char why[256];

	CHECK(load_parse(text, &running, why, sizeof(why)) == 0);
	return !load_missing(running.load, 1);
}

static void start(struct running_load *running, const char *text)
{
	char why[256];

	CHECK(load_parse(text, running, why, sizeof(why)) == 0);
	running->order.cpus = 1;
	CHECK(load_start(running, why, sizeof(why)) == 0);
	CHECK(!running->load->space == !running->folder.cleaner);
	CHECK(running->pid > 0);
	CHECK(keeper_needed(running) || getpgid(running->pid) == running->pid);
}

/* This process inherits orphans, so once it has no child nothing of a load is left; the alarm ends a wait in vain. */
static void await_the_end_of_all(void)
{
	pid_t pid;

	do
		pid = waitpid(-1, NULL, 0);
	while (pid > 0 || errno == EINTR);
	CHECK(errno == ECHILD);
}

/* Work goes on: the counters move, and move again. The alarm is the only limit on how long that may take. */
static void await_work(struct running_load *running)
{
	int64_t before = load_work(running);

	while (load_work(running) == before)
		sys_sleep(CLOCK_MONOTONIC, 0, 1000000);
	CHECK(load_work(running) > before && before >= 0);
}

static void every_worker_counts_and_none_stays(void)
{
	for (int i = 0; i < ORDERS; i++) {
		struct running_load running;

		if (!runs_here(orders[i]))
			continue;
		start(&running, orders[i]);
		for (uint32_t slot = 0; slot < running.slots; slot++)
			while (running.order.slots[slot].work == 0)
				sys_sleep(CLOCK_MONOTONIC, 0, 1000000);
		await_work(&running);
		await_work(&running);
		load_stop(&running);
		CHECK(running.pid == 0 && !running.order.slots && !running.seen);
		await_the_end_of_all();
		load_stop(&running); /* once more does nothing */
	}
}

static void counters_that_wrap_are_added_up(void)
{
	struct load_slot slots[2] = { { .work = 5 }, { .work = UINT32_MAX - 1 } };
	uint32_t seen[2] = { 0, UINT32_MAX - 3 };
	bool worked[2] = { false };
	struct running_load running = { .order = { .slots = slots }, .slots = 2, .seen = seen, .worked = worked };

	CHECK(load_work(&running) == 7 && load_idle_parts(&running) == 2); /* the first reading is of before */
	slots[1].work += 10;
	CHECK(load_work(&running) == 17 && load_idle_parts(&running) == 1);
	CHECK(load_work(&running) == 17 && load_idle_parts(&running) == 1);
}

/* A child of a process, and not one that starts and ends all the time; 0 if there is none. */
static pid_t child_of(pid_t parent)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	CHECK(folder);
	while (!found && (entry = readdir(folder))) {
		char path[64], text[512] = "";
		int pid = 0, its_parent = 0;

		snprintf(path, sizeof(path), "/proc/%.20s/stat", entry->d_name);
		if (text_read_line(path, text, sizeof(text)) == 0 && sscanf(text, "%d (%*[^)]) %*c %d", &pid, &its_parent) == 2 &&
		    its_parent == parent)
			found = pid;
	}
	CHECK(closedir(folder) == 0);
	return found;
}

/* One worker less is another load, so the rest goes as well, and the agent hears of it. */
static void a_load_that_loses_a_worker_ends(void)
{
	for (int i = 0; i < ORDERS; i++) {
		struct running_load running;

		if (!runs_here(orders[i]))
			continue;
		int status;

		start(&running, orders[i]);
		await_work(&running);
		pid_t victim = child_of(running.pid);

		CHECK(victim > 0 && kill(victim, SIGKILL) == 0);
		CHECK(waitpid(running.pid, &status, 0) == running.pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) > 0);
		await_the_end_of_all();
		running.pid = 0;
		load_stop(&running);
	}
}

/* Every round is of other processes, of which none stays, and the count goes on. Its end ends the last round too. */
static void rounds_follow_each_other(const char *order)
{
	struct running_load running;
	pid_t seen[3] = { 0 };
	int64_t work = 0;

	start(&running, order);
	for (int i = 0; i < 3; i++) {
		while (!(seen[i] = child_of(running.pid)) || (i && seen[i] == seen[i - 1]))
			sys_sleep(CLOCK_MONOTONIC, 0, 1000000);
		await_work(&running);
		CHECK(load_work(&running) > work);
		work = load_work(&running);
	}
	CHECK(seen[0] != seen[1] && seen[1] != seen[2]);
	load_stop(&running);
	await_the_end_of_all();
}

static void a_load_dies_with_its_parent(void)
{
	for (int i = 0; i < ORDERS; i++) {
		if (!runs_here(orders[i]))
			continue;
		pid_t parent = fork();

		CHECK(parent >= 0);
		if (parent == 0) {
			struct running_load running;

			start(&running, orders[i]);
			await_work(&running);
			kill(getpid(), SIGKILL); /* nothing here can clean up */
		}
		int status;

		CHECK(waitpid(parent, &status, 0) == parent);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		await_the_end_of_all();
	}
}

/* Nothing is started then, so nothing has to be ended; and the folder is gone. */
static void a_load_that_has_no_room_is_refused(void)
{
	struct running_load running;
	char why[256];

	CHECK(load_parse("dd:workers=64,mib=65536", &running, why, sizeof(why)) == 0);
	CHECK(load_start(&running, why, sizeof(why)) == -ENOSPC);
	CHECK(!strcmp(why, "load dd could not be started: No space left on device"));
	CHECK(running.pid == 0 && running.folder.cleaner == 0);
	load_stop(&running);
	await_the_end_of_all();
}

static void refuse(const char *text, const char *sentence)
{
	struct running_load running;
	char why[256] = "";

	CHECK(load_parse(text, &running, why, sizeof(why)) == -EINVAL);
	CHECK(!strcmp(why, sentence));
}

static void orders_that_make_no_sense_are_refused(void)
{
	refuse("", "there is no load ''; see rtproof-agent list");
	refuse("network", "there is no load 'network'; see rtproof-agent list");
	refuse("cpu:speed=1", "load 'cpu' has no option 'speed'");
	refuse("sched:groups", "option 'groups' of load 'sched' takes a whole number from 1 to 1024");
	refuse("sched:groups=", "option 'groups' of load 'sched' takes a whole number from 1 to 1024");
	refuse("sched:pairs=2,bytes=4097", "option 'bytes' of load 'sched' takes a whole number from 1 to 4096");
	refuse("cpu:restart", "option 'restart' of load 'cpu' takes a time of at least 100ms, such as 65s");
	refuse("cpu:restart=5", "option 'restart' of load 'cpu' takes a time of at least 100ms, such as 65s");
	refuse("cpu:restart=99ms", "option 'restart' of load 'cpu' takes a time of at least 100ms, such as 65s");
}

static void a_load_is_bound_by_what_stands_at_its_end(void)
{
	struct running_load running;
	char why[256];

	CHECK(load_parse("sched:groups=2@0,2-3", &running, why, sizeof(why)) == 0);
	CHECK(running.bound && cpus_count(&running.cpus) == 3 && cpus_has(&running.cpus, 3) && !cpus_has(&running.cpus, 1));
	CHECK(running.order.values[0] == 2 && !strcmp(running.name, "sched@0,2-3"));
	CHECK(load_parse("lsr:path=/home/@one", &running, why, sizeof(why)) == 0 && !running.bound);
	CHECK(!strcmp(running.name, "lsr") && !strcmp(running.order.texts[1], "/home/@one"));
	CHECK(load_parse("lsr:path=/@@1", &running, why, sizeof(why)) == 0 && running.bound && !strcmp(running.order.texts[1], "/@"));
	refuse("mmap@", "load 'mmap@': an @ stands at the end, with a list of CPUs behind it: NAME[:key=value,...]@0-2,5");
	refuse("mmap@0:workers=1", "load 'mmap@0:workers=1': an @ stands at the end, with a list of CPUs behind it: NAME[:key=value,...]@0-2,5");
	refuse("mmap@0@1", "load 'mmap@0@1' is bound twice: give one @ with all of its CPUs, such as @0-2,5");
	refuse("mmap@0:workers=1@1", "load 'mmap@0:workers=1@1' is bound twice: give one @ with all of its CPUs, such as @0-2,5");
	refuse("mmap@1-0", "load 'mmap' can't be bound to '@1-0': a list of CPUs is such as 0-2,5");
	refuse("@0", "there is no load ''; see rtproof-agent list");
}

/* All that it starts runs there too, whether it has a keeper or not, and also where the agent's own affinity ends. */
static void a_bound_load_stays_on_its_cpus(const char *order)
{
	struct running_load running;
	struct cpus own, narrow = { { 0 } }, bound = { { 0 } }, child;
	char text[64];

	CHECK(cpus_get_affinity(0, &own) == 0);
	cpus_add(&narrow, cpus_nth(&own, 0));
	cpus_add(&bound, cpus_nth(&own, cpus_count(&own) - 1));
	CHECK(cpus_set_affinity(0, &narrow) == 0);
	snprintf(text, sizeof(text), "%s@%d", order, cpus_nth(&bound, 0));
	start(&running, text);
	await_work(&running);
	CHECK(cpus_get_affinity(running.pid, &child) == 0 && !memcmp(&child, &bound, sizeof(child)));
	CHECK(cpus_get_affinity(child_of(running.pid), &child) == 0 && !memcmp(&child, &bound, sizeof(child)));
	load_stop(&running);
	await_the_end_of_all();
	CHECK(cpus_set_affinity(0, &own) == 0);
}

/* How many workers; or a negative errno. */
static int prepare(const char *text)
{
	struct running_load running;
	char why[256];

	CHECK(load_parse(text, &running, why, sizeof(why)) == 0);
	running.order.cpus = 3;
	int err = load_prepare(&running, why, sizeof(why));

	return err ? err : (int)running.slots;
}

static void what_is_not_said_follows_the_cpus(void)
{
	CHECK(prepare("cpu") == 3);
	CHECK(prepare("sched") == 30);
	CHECK(prepare("sched:pairs=4") == 12);
	CHECK(prepare("net") == 6);
	CHECK(prepare("net:udp=0,tcp=2") == 2);
	CHECK(prepare("net:udp=0,tcp=0") == -EINVAL);
	CHECK(prepare("dd") == 1);
}

/* How long a load rests on purpose, in ms. */
static int rest_ms(const char *text)
{
	struct running_load running;
	char why[256];

	CHECK(load_parse(text, &running, why, sizeof(why)) == 0);
	running.order.cpus = 1;
	CHECK(load_prepare(&running, why, sizeof(why)) == 0);
	return (int)(running.order.rest_ns / 1000000);
}

static void a_low_rate_is_a_rest(void)
{
	CHECK(rest_ms("sched:pairs=10,rate=50") == 2000);
	CHECK(rest_ms("sched:pairs=10,rate=10000") == 0); /* a round of 10 ms is too short to be seen */
	CHECK(rest_ms("sched") == 0);
	CHECK(rest_ms("mmap:workers=1,mib=1,rate=1") == 1000);
	CHECK(rest_ms("mmap:workers=1,mib=1,rate=1000") == 0);
	CHECK(rest_ms("lsr:rate=1") > 500);
}

static void memory_is_taken_within_bounds(void)
{
	static const char *const hungry[] = { "fork", "mem", "mmap", "tmpfs" };
	char text[64];

	for (size_t i = 0; i < sizeof(hungry) / sizeof(*hungry); i++) {
		snprintf(text, sizeof(text), "%s:workers=4096", hungry[i]);
		CHECK(prepare(text) == 4096);
		snprintf(text, sizeof(text), "%s:workers=4096,mib=1024", hungry[i]);
		CHECK(memory_room() / 4096 / LOAD_MIB > 2048 || prepare(text) == -ENOMEM);
	}
}

/* ThreadSanitizer keeps a file of its own there while a program starts; load churn is ended in the midst of that. */
static void no_file_of_a_load_is_left(void)
{
	DIR *folder = opendir(scratch_folder);
	struct dirent *entry;

	CHECK(folder);
	while ((entry = readdir(folder)))
		if (!strncmp(entry->d_name, "tsan.rodata.", strlen("tsan.rodata.")))
			CHECK(unlinkat(dirfd(folder), entry->d_name, 0) == 0);
	CHECK(closedir(folder) == 0);
	CHECK(rmdir(scratch_folder) == 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "version")) /* load churn starts the program that it is in */
		return EXIT_SUCCESS;
	sys_init();
	alarm(PATIENCE_S);
	orders_that_make_no_sense_are_refused();
	a_load_is_bound_by_what_stands_at_its_end();
	what_is_not_said_follows_the_cpus();
	a_low_rate_is_a_rest();
	memory_is_taken_within_bounds();
	counters_that_wrap_are_added_up();
	scratch_file();
	CHECK(setenv("TMPDIR", scratch_folder, 1) == 0);
	a_load_that_has_no_room_is_refused();
	bool inherits = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;

	every_worker_counts_and_none_stays();
	no_file_of_a_load_is_left();
	CHECK(mkdir(scratch_folder, 0700) == 0);
	if (!inherits)
		SKIP("orphans can't be given to a process of one's choice here: Linux 3.4, and not under this emulator");
	a_bound_load_stays_on_its_cpus("cpu:workers=1");
	a_bound_load_stays_on_its_cpus("cpu:workers=1,restart=30s");
	rounds_follow_each_other("sched:groups=1,pairs=2,restart=100ms");
	rounds_follow_each_other("files:workers=2,mib=1,kib=2,restart=100ms"); /* the next one finds files of the one before */
	a_load_that_loses_a_worker_ends();
	a_load_dies_with_its_parent();
	no_file_of_a_load_is_left();
	return EXIT_SUCCESS;
}
