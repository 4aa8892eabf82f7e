/* SPDX-License-Identifier: Apache-2.0 */
/* The collector of an audit against its own reading: what hangs, dies, is too large or too many, or cannot be seen. */
#include "system/sys.h"

#include "collect/collect.h"

#include "check.h"
#include "collect/lines.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { QUICK_MS = 300, MANY = 1100, ROWS = ENTRIES_MOST + 10, LONG_ROWS = 140, BUSY = 40, LINKS = 900 };

static char folder[64] = "/tmp/rtproof-collect-XXXXXX";

static const struct audit_path no_paths[] = { { 0, FILE_CONTENT } };
static const struct audit_probe no_probes[] = { { 0, 0, 0, false, false } };

/* One of several texts "FOLDER/NAME". */
static const char *in_folder(const char *name)
{
	static char path[16][128];
	static int next;

	next = (next + 1) % 16;
	snprintf(path[next], sizeof(path[next]), "%s/%s", folder, name);
	return path[next];
}

/* The same for a table, which outlives many other texts. */
static const char *row(const char *name)
{
	static char path[32][128];
	static int used;

	CHECK(used < 32);
	snprintf(path[used], sizeof(path[used]), "%s/%s", folder, name);
	return path[used++];
}

static void write_text(const char *name, const char *text)
{
	int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

struct found {
	struct audit_entry head;
	const char *content;
	int times;
};

/* The entry of a path in a collection; times: how often it is there. */
static struct found find(const struct collection *collection, const char *path)
{
	const uint8_t *at = collection->entries.data, *end = at + collection->entries.length;
	struct found found = { .times = 0 };

	while (at < end) {
		struct audit_entry head;

		memcpy(&head, at, sizeof(head));
		const char *name = (const char *)at + sizeof(head);

		if (head.path == strlen(path) && !memcmp(name, path, head.path)) {
			found.head = head;
			found.content = name + head.path;
			found.times++;
		}
		at += sizeof(head) + head.path + head.content;
	}
	CHECK(at == end);
	return found;
}

static bool holds(const struct collection *collection, const char *path, const char *text)
{
	struct found found = find(collection, path);

	return found.times == 1 && !found.head.err && found.head.content == strlen(text) &&
	       !memcmp(found.content, text, found.head.content);
}

static bool failed(const struct collection *collection, const char *path, int err)
{
	struct found found = find(collection, path);

	return found.times == 1 && found.head.err == err && !found.head.content;
}

static bool left_out(const struct collection *collection, const char *part)
{
	return memmem(collection->left_out.data, collection->left_out.length, part, strlen(part));
}

static struct collection collect(const struct audit_path *paths, const struct audit_probe *probes)
{
	const struct collect_plan plan = { paths, NULL, NULL, probes, QUICK_MS, FACTS_MOST };
	struct collection collection;

	memset(&collection, 0, sizeof(collection));
	CHECK(collect_system(&collection, &plan, MOMENT_START, 0) == 0);
	return collection;
}

static int say_yes(struct bytes *text, int pid)
{
	(void)pid;
	put_format(text, "yes\n");
	return 0;
}

static int hang(struct bytes *text, int pid)
{
	(void)text;
	(void)pid;
	while (pause())
		continue;
	return 0;
}

/* Works for longer than anybody has patience for one that waits. */
static int work(struct bytes *text, int pid)
{
	clock_t most = clock() + CLOCKS_PER_SEC * 3 * QUICK_MS / 1000;

	(void)pid;
	while (clock() < most)
		continue;
	put_format(text, "done\n");
	return 0;
}

/* Is stopped for a while by another process, as by a key at a terminal. It never sleeps: on a busy machine that other may take long to end. */
static int be_stopped(struct bytes *text, int pid)
{
	pid_t self = getpid(), other = fork(), ended = 0;

	(void)pid;
	if (!other) {
		CHECK(kill(self, SIGSTOP) == 0 && usleep(2000 * QUICK_MS) == 0 && kill(self, SIGCONT) == 0);
		_exit(0);
	}
	while (other > 0 && !ended)
		ended = waitpid(other, NULL, WNOHANG);
	if (other < 0 || ended != other)
		return -errno;
	put_format(text, "goes on\n");
	return 0;
}

static int die(struct bytes *text, int pid)
{
	(void)text;
	(void)pid;
	kill(getpid(), SIGKILL);
	return 0;
}

static int flood(struct bytes *text, int pid)
{
	(void)pid;
	for (int i = 0; i <= PROBE_MOST / 16; i++)
		put_format(text, "sixteen letters\n");
	return 0;
}

static int refuse(struct bytes *text, int pid)
{
	put_format(text, "half of an answer %d", pid);
	return -EPERM;
}

static int make_child(struct bytes *text, int pid)
{
	int status = -1;
	pid_t child = fork();

	(void)pid;
	if (!child)
		_exit(7);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -errno;
	put_format(text, "%d\n", WEXITSTATUS(status));
	return 0;
}

/* A reader that waits for this signal, or for the host's end of a pipe, must not. */
static int count_open_files(struct bytes *text, int pid)
{
	int n = 0;

	(void)pid;
	for (int fd = 0; fd < 256; fd++) {
		struct stat status;

		n += fstat(fd, &status) == 0 && !S_ISCHR(status.st_mode); /* only /dev/null, and the pipe to the collector */
	}
	put_format(text, "%d\n", n);
	return 0;
}

static void plain_files(void)
{
	struct audit_path paths[] = {
		{ row("a*"), FILE_CONTENT }, { row("link"), LINK_TARGET },  { row("sub/"), FOLDER_NAMES },
		{ row("a1"), FILE_CONTENT }, { row("z*"), FILE_CONTENT },	{ row("gone"), FILE_CONTENT },
		{ row("*/in"), FILE_COUNTS }, { "/nowhere/*/x", FILE_CONTENT }, { row("sub/b"), FILE_COUNTS }, { 0, FILE_CONTENT },
	};
	const struct audit_path left[] = { { row("sub/b"), FILE_COUNTS }, { 0, FILE_CONTENT } }; /* by who measures */
	const struct audit_probe probes[] = { { "once", "", say_yes, false, false }, { "twice", "", say_yes, true, false },
					      { "of-process", "", say_yes, true, true }, { 0, 0, 0, false, false } };
	const struct collect_plan plan = { paths, paths, left, probes, QUICK_MS, FACTS_MOST };

	write_text("a1", "one");
	write_text("a2", "");
	CHECK(mkdir(in_folder("sub"), 0700) == 0 && symlink("where", in_folder("link")) == 0);
	write_text("sub/in", "inner\n");
	write_text("sub/b", "");
	struct collection found = collect(paths, probes);

	CHECK(holds(&found, in_folder("a1"), "one") && holds(&found, in_folder("a2"), "") && holds(&found, in_folder("link"), "where"));
	CHECK(holds(&found, in_folder("sub/"), "b\nin\n") && holds(&found, in_folder("sub/in"), "inner\n"));
	CHECK(!find(&found, in_folder("a1/in")).times); /* a1 is no folder */
	CHECK(failed(&found, in_folder("z*"), -ENOENT) && failed(&found, in_folder("gone"), -ENOENT));
	CHECK(failed(&found, "/nowhere/*/x", -ENOENT));
	CHECK(holds(&found, "once", "yes\n") && holds(&found, "twice", "yes\n") && !find(&found, "of-process").times);
	CHECK(!found.hung && !found.died && !found.in_place && !found.left_out.length);
	collect_free(&found);

	CHECK(collect_system(&found, &plan, MOMENT_END, 1) == 0);
	CHECK(holds(&found, in_folder("sub/in"), "inner\n") && holds(&found, "twice", "yes\n") && holds(&found, "of-process", "yes\n"));
	CHECK(!find(&found, in_folder("a1")).times && !find(&found, "once").times && !find(&found, in_folder("sub/b")).times);
	collect_free(&found);
}

/* A folder that cannot be listed is no folder without names. */
static void folders_that_fail(void)
{
	const struct audit_path paths[] = { { row("*/*"), FILE_CONTENT }, { row("loop/*"), FILE_CONTENT }, { 0, FILE_CONTENT } };

	CHECK(symlink(in_folder("loop"), in_folder("loop")) == 0);
	struct collection found = collect(paths, no_probes);

	CHECK(failed(&found, in_folder("loop/*"), -ELOOP) && holds(&found, in_folder("sub/in"), "inner\n"));
	collect_free(&found);
	CHECK(unlink(in_folder("loop")) == 0);
}

static void bounds(void)
{
	struct audit_path paths[] = { { row("many/*"), FILE_CONTENT }, { row("many/"), FOLDER_NAMES },
				      { row("long"), FILE_CONTENT }, { 0, FILE_CONTENT } };
	char name[32], *text = calloc(1, RECORD_FILE_MOST + 2);

	CHECK(mkdir(in_folder("many"), 0700) == 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		write_text(name, "");
	}
	memset(text, 'x', RECORD_FILE_MOST + 1);
	write_text("long", text);
	struct collection found = collect(paths, no_probes);
	struct found cut = find(&found, in_folder("long"));

	CHECK(failed(&found, in_folder("many/*"), -E2BIG) && left_out(&found, "many/*: there are more than 1024 names; "));
	CHECK(find(&found, in_folder("many/")).head.cut && left_out(&found, "many/: there are more than 1024 names; "));
	CHECK(cut.head.cut && cut.head.content == RECORD_FILE_MOST);
	collect_free(&found);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		CHECK(unlink(in_folder(name)) == 0);
	}
	CHECK(rmdir(in_folder("many")) == 0);
	free(text);
}

/* The record says that it is not all, and nothing grows without end. */
static void too_much(void)
{
	struct audit_path *paths = calloc(ROWS + 1, sizeof(*paths));
	char(*names)[128] = calloc(ROWS, sizeof(*names)), deep[900];

	for (int i = 0; i < ROWS; i++) {
		snprintf(names[i], sizeof(names[i]), "/nowhere/%d", i);
		paths[i].pattern = names[i];
	}
	struct collection found = collect(paths, no_probes);

	CHECK(failed(&found, "/nowhere/0", -ENOENT) && !find(&found, "/nowhere/16384").times);
	CHECK(left_out(&found, "/nowhere/16384: and all behind it: there are too many files; "));
	collect_free(&found);

	for (int i = 0; i < LONG_ROWS; i++) /* the same file by many names: each slash more or less is another */
		snprintf(names[i], sizeof(names[i]), "%s%.*s%.*slong", folder, 1 + i / 12, "////////////", 2 * (i % 12), "./././././././././././");
	paths[LONG_ROWS].pattern = NULL;
	found = collect(paths, no_probes);
	CHECK(found.entries.length < FACTS_MOST + 2 * RECORD_FILE_MOST && left_out(&found, "the files are too long together"));
	collect_free(&found);

	memset(deep, 'd', sizeof(deep));
	deep[0] = '/';
	deep[sizeof(deep) - 1] = '\0';
	paths[0].pattern = deep;
	paths[1].pattern = NULL;
	found = collect(paths, no_probes);
	CHECK(!found.entries.length && left_out(&found, "the path is too long"));
	collect_free(&found);
	free(paths);
	free(names);
}

static void bad_probes(void)
{
	const struct audit_probe probes[] = {
		{ "hangs", "", hang, false, false },   { "dies", "", die, false, false },	{ "floods", "", flood, false, false },
		{ "refuses", "", refuse, false, false }, { "child", "", make_child, false, false }, { "files", "", count_open_files, false, false },
		{ "last", "", say_yes, false, false },   { 0, 0, 0, false, false },
	};
	const struct audit_path paths[] = { { row("a1"), FILE_CONTENT }, { 0, FILE_CONTENT } };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t all;

	/* What the agent has done to its signals must not reach the reader. */
	sigfillset(&all);
	CHECK(sigaction(SIGCHLD, &ignore, NULL) == 0 && sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	struct collection found = collect(paths, probes);
	struct found flooded = find(&found, "floods");

	CHECK(holds(&found, in_folder("a1"), "one") && holds(&found, "last", "yes\n"));
	CHECK(failed(&found, "hangs", -ETIMEDOUT) && failed(&found, "dies", -EIO) && failed(&found, "refuses", -EPERM));
	CHECK(flooded.head.cut && flooded.head.content == PROBE_MOST);
	CHECK(holds(&found, "child", "7\n") && holds(&found, "files", "1\n"));
	CHECK(found.hung == 1 && found.died == 1 && !found.in_place && !found.left_out.length);
	collect_free(&found);
	sigemptyset(&all);
	signal(SIGCHLD, SIG_DFL);
	CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
}

static void slow_is_not_hung(void)
{
	const struct audit_probe probes[] = { { "works", "", work, false, false }, { "stopped", "", be_stopped, false, false },
					      { 0, 0, 0, false, false } };
	struct collection found = collect(no_paths, probes);

	CHECK(holds(&found, "works", "done\n") && holds(&found, "stopped", "goes on\n") && !found.hung && !found.died);
	collect_free(&found);
}

/* A tree of control groups has many files where a pattern asks for folders. None of them is told, and none is kept in mind without end. */
static void files_are_no_folders(void)
{
	const struct audit_path paths[] = { { row("tree/*/*/in"), FILE_CONTENT }, { row("tree/*/links/*/*/in"), FILE_CONTENT },
					    { 0, FILE_CONTENT } };
	char name[64];

	CHECK(mkdir(in_folder("tree"), 0700) == 0 && mkdir(in_folder("tree/a"), 0700) == 0 && mkdir(in_folder("tree/a/b"), 0700) == 0);
	CHECK(mkdir(in_folder("tree/a/links"), 0700) == 0);
	write_text("tree/a/b/in", "deep");
	write_text("tree/a/c", "");
	write_text("tree/d", "");
	for (int i = 0; i < BUSY; i++) {
		snprintf(name, sizeof(name), "tree/a/links/%d", i);
		CHECK(mkdir(in_folder(name), 0700) == 0);
		for (int j = 0; j < LINKS; j++) {
			snprintf(name, sizeof(name), "tree/a/links/%d/%d", i, j);
			CHECK(symlink("/dev/null", in_folder(name)) == 0);
		}
	}
	struct collection found = collect(paths, no_probes);

	CHECK(holds(&found, in_folder("tree/a/b/in"), "deep") && !find(&found, in_folder("tree/a/c/in")).times);
	CHECK(!found.hung && !found.died && left_out(&found, "too many files"));
	collect_free(&found);
	for (int i = 0; i < BUSY; i++) {
		for (int j = 0; j < LINKS; j++) {
			snprintf(name, sizeof(name), "tree/a/links/%d/%d", i, j);
			CHECK(unlink(in_folder(name)) == 0);
		}
		snprintf(name, sizeof(name), "tree/a/links/%d", i);
		CHECK(rmdir(in_folder(name)) == 0);
	}
	CHECK(unlink(in_folder("tree/a/b/in")) == 0 && unlink(in_folder("tree/a/c")) == 0 && unlink(in_folder("tree/d")) == 0);
	CHECK(rmdir(in_folder("tree/a/b")) == 0 && rmdir(in_folder("tree/a/links")) == 0 && rmdir(in_folder("tree/a")) == 0);
	CHECK(rmdir(in_folder("tree")) == 0);
}

static void all_hangs(void)
{
	const struct audit_probe probes[] = {
		{ "1", "", hang, false, false }, { "2", "", hang, false, false }, { "3", "", hang, false, false },
		{ "4", "", hang, false, false }, { "5", "", hang, false, false }, { 0, 0, 0, false, false },
	};
	struct collection found = collect(no_paths, probes);

	CHECK(found.hung == 4 && failed(&found, "4", -ETIMEDOUT) && !find(&found, "5").times);
	CHECK(left_out(&found, "all that was not read yet: too many reads hung; "));
	collect_free(&found);
}

/* Without a right to make a process, this one reads. In a child, because the limit is for ever. */
static void no_process_can_be_made(void)
{
	const struct audit_path paths[] = { { "/proc/self/comm", FILE_CONTENT }, { "/nowhere/*", FILE_CONTENT }, { 0, FILE_CONTENT } };
	const struct audit_probe probes[] = { { "last", "", say_yes, false, false }, { "child", "", make_child, false, false },
					      { 0, 0, 0, false, false } };
	const struct rlimit none = { 0, 0 };
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		CHECK(setrlimit(RLIMIT_NPROC, &none) == 0 && (geteuid() || setuid(65534) == 0));
		struct collection found = collect(paths, probes);

		CHECK(found.in_place == -EAGAIN && holds(&found, "last", "yes\n") && failed(&found, "child", -EAGAIN));
		CHECK(failed(&found, "/nowhere/*", -ENOENT) && find(&found, "/proc/self/comm").head.content > 0);
		collect_free(&found);
		_exit(EXIT_SUCCESS); /* a sanitizer would make a process at its end */
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
}

static bool is_text(const struct audit_path *path)
{
	return path->kind == FILE_CONTENT || path->kind == FILE_COUNTS;
}

/* Nothing of the tables waits or acts. */
static void check_table(const struct audit_path *table)
{
	static const char *const dangerous[] = { "kmsg", "trace_pipe", "kcore", "/reset", "rescan", "nvram", "/proc/acpi/event", "/eject",
						 "/proc/[0-9", "/proc/*/", "/dev/", "pagemap", "/mem", "_pipe", "/remove", "/unbind", "/bind" };

	for (const struct audit_path *path = table; path->pattern; path++) {
		CHECK(*path->pattern == '/');
		CHECK((path->kind == FOLDER_NAMES) == (path->pattern[strlen(path->pattern) - 1] == '/'));
		for (size_t i = 0; i < sizeof(dangerous) / sizeof(*dangerous); i++) {
			const char *at = strstr(path->pattern, dangerous[i]);

			if (at && !strncmp(at, "/mem", 4))
				at = at[4] ? NULL : at; /* /proc/meminfo is none of these */
			if (at)
				printf("%s is in the table\n", path->pattern);
			CHECK(!at);
		}
		/* Two subjects may read the same, once, but not as different things. */
		for (const struct audit_path *other = path + 1; other->pattern; other++)
			CHECK(strcmp(other->pattern, path->pattern) != 0 || (is_text(other) && is_text(path)));
	}
}

int main(void)
{
	CHECK(mkdtemp(folder));
	plain_files();
	folders_that_fail();
	bounds();
	too_much();
	bad_probes();
	all_hangs();
	slow_is_not_hung();
	files_are_no_folders();
	no_process_can_be_made();
	check_table(audit_paths);
	check_table(run_paths);

	const char *const made[] = { "sub/in", "sub/b", "a1", "a2", "link", "long" };

	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
		CHECK(unlink(in_folder(made[i])) == 0);
	CHECK(rmdir(in_folder("sub")) == 0 && rmdir(folder) == 0);
	return EXIT_SUCCESS;
}
