/* SPDX-License-Identifier: Apache-2.0 */
/* What a host that follows a run gets, and what it may ask for. Each follower is a process, as on a board. */
#include "system/sys.h"

#include "background/follow.h"
#include "background/frames.h"
#include "record/bytes.h"

#include "background_run.h"
#include "check.h"

#include <poll.h>
#include <sys/wait.h>

enum { FILE_BYTES = 2 * FRAME_BYTES + 1000, GOT_MOST = 1 << 20, EXIT_BUSY = 16 };

struct follower {
	pid_t pid;
	int to, from;
	bool as_text;
	char got[GOT_MOST];
	size_t length, at; /* at: begin of what no frame was taken from yet */
};

struct frame {
	char type;
	long long offset;
	size_t length;
	uint8_t content[FRAME_BYTES];
};

static struct follower first, second;
static struct frame frame;

static _Noreturn void be_follower(const char *folder, const char *host, int64_t log_from, bool as_text)
{
	char why[256] = "";
	int err = follow(folder, host, log_from, as_text, why, sizeof(why));

	fputs(why, stderr);
	_exit(-err);
}

static void begin(struct follower *follower, const char *folder, const char *host, int64_t log_from, bool as_text)
{
	int to[2], from[2];

	CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
	fflush(stdout);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		/* The ends of another follower that is still there would keep its input open. */
		close(first.to);
		if (dup2(to[0], STDIN_FILENO) < 0 || dup2(from[1], STDOUT_FILENO) < 0 || dup2(from[1], STDERR_FILENO) < 0)
			_exit(1);
		close(to[1]);
		close(from[0]);
		be_follower(folder, host, log_from, as_text);
	}
	close(to[0]);
	close(from[1]);
	follower->pid = pid;
	follower->to = to[1];
	follower->from = from[0];
	follower->as_text = as_text;
	follower->length = follower->at = 0;
	follower->got[0] = '\0';
}

static void say(struct follower *follower, const char *line)
{
	CHECK(write(follower->to, line, strlen(line)) == (ssize_t)strlen(line));
}

/* Some more of what it sends; false: it sends no more. */
static bool take(struct follower *follower)
{
	struct pollfd output = { .fd = follower->from, .events = POLLIN };

	CHECK(follower->length < GOT_MOST - 1);
	CHECK(poll(&output, 1, (int)(RUN_PATIENCE_NS / 1000000)) == 1);
	ssize_t n = read(follower->from, follower->got + follower->length, GOT_MOST - 1 - follower->length);

	CHECK(n >= 0);
	follower->length += (size_t)n;
	follower->got[follower->length] = '\0';
	return n > 0;
}

static int digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* Base64 up to the end of the line. How many characters, or 0 while the line is not whole. */
static size_t decode(const char *text, uint8_t *bytes, size_t length)
{
	size_t n = 0, whole = strcspn(text, "\n");
	uint32_t bits = 0;

	if (!text[whole])
		return 0;
	CHECK(whole == (length + 2) / 3 * 4);
	for (size_t i = 0; i < whole && n < length; i++) {
		bits = bits << 6 | (uint32_t)(digit(text[i]) < 0 ? 0 : digit(text[i]));
		if (i % 4 == 3)
			for (int shift = 16; shift >= 0 && n < length; shift -= 8)
				bytes[n++] = (uint8_t)(bits >> shift);
	}
	return whole;
}

/* Whether another whole frame was there, which is in `frame` then. */
static bool whole_frame(struct follower *follower)
{
	const char *from = follower->got + follower->at;
	unsigned long crc;
	int head = 0;

	if (sscanf(from, "\n=rtproof %c %lld %zu %8lx%n", &frame.type, &frame.offset, &frame.length, &crc, &head) != 4 || !from[head])
		return false;
	CHECK(from[head] == (follower->as_text ? ' ' : '\n'));
	CHECK(frame.length <= (follower->as_text ? FRAME_TEXT_BYTES : FRAME_BYTES));
	size_t size = frame.length, begin = (size_t)head + 1;

	if (follower->as_text && frame.length)
		size = decode(from + begin, frame.content, frame.length);
	if ((frame.length && !size) || follower->length - follower->at < begin + size + follower->as_text)
		return false;
	if (!follower->as_text)
		memcpy(frame.content, from + begin, size);
	CHECK(crc32_update(0, frame.content, frame.length) == crc);
	follower->at += begin + size + follower->as_text;
	return true;
}

static void next_frame(struct follower *follower)
{
	while (!whole_frame(follower))
		CHECK(take(follower));
}

/* The next of this type; others are passed over. */
static void next_of(struct follower *follower, char type)
{
	do
		next_frame(follower);
	while (frame.type != type);
}

/* The next that says how it stands begins with these words; except that files of an ended run are still on their way. */
static void expect_standing(struct follower *follower, const char *words)
{
	char said[300];

	do
		next_of(follower, 'S');
	while (!memcmp(frame.content, "sending", 7));
	snprintf(said, sizeof(said), "%.*s", (int)frame.length, (const char *)frame.content);
	if (strncmp(said, words, strlen(words)) != 0)
		printf("%s, and not %s\n", said, words);
	CHECK(!strncmp(said, words, strlen(words)));
}

/* What comes of a file, up to its end, is what it has from there on. */
static void expect_file(struct follower *follower, char type, const uint8_t *content, size_t from, size_t length)
{
	while (from < length) {
		next_of(follower, type);
		CHECK(frame.offset == (long long)from && frame.length > 0 && from + frame.length <= length);
		CHECK(!memcmp(frame.content, content + from, frame.length));
		from += frame.length;
	}
}

static int end_of(struct follower *follower)
{
	int status;

	close(follower->to);
	while (take(follower))
		;
	close(follower->from);
	CHECK(waitpid(follower->pid, &status, 0) == follower->pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void remove_run(const char *folder)
{
	int err = background_remove(folder);

	if (err)
		printf("%s: %s\n", folder, strerror(-err));
	CHECK(err == 0);
}

static const uint8_t *some_bytes(void)
{
	static uint8_t bytes[FILE_BYTES];
	uint64_t state = 1;

	for (size_t i = 0; i < FILE_BYTES; i++)
		bytes[i] = (uint8_t)random_bits(&state);
	return bytes;
}

/* A run that has ended, with a log and a record. */
static const char *ended_run(void)
{
	const char *folder = run_folder();

	invent_run(folder, 2, 3, 1, "");
	write_in_run(folder, "exit", "exit 0\n", 7);
	write_in_run(folder, "log", (const char *)some_bytes(), FILE_BYTES);
	write_in_run(folder, "run.rtrec", (const char *)some_bytes(), FILE_BYTES);
	return folder;
}

static void log_and_record_come_from_where_the_host_was(bool as_text)
{
	const char *folder = ended_run();
	char lengths[80];

	begin(&first, folder, "one", 100, as_text);
	expect_standing(&first, "exit 0; boot ");
	snprintf(lengths, sizeof(lengths), "; log %d; record %d", FILE_BYTES, FILE_BYTES);
	CHECK(frame.length > strlen(lengths));
	CHECK(!memcmp(frame.content + frame.length - strlen(lengths), lengths, strlen(lengths)));
	expect_file(&first, 'L', some_bytes(), 100, FILE_BYTES);
	expect_standing(&first, "exit 0");
	say(&first, "record 17000\n");
	expect_file(&first, 'R', some_bytes(), 17000, FILE_BYTES);
	expect_standing(&first, "exit 0"); /* once more, so that the host knows that this was all */
	say(&first, "done\n");
	CHECK(end_of(&first) == 0);
	remove_run(folder);
}

static void what_was_damaged_on_the_way_is_sent_again(void)
{
	const char *folder = ended_run();

	begin(&first, folder, "one", FILE_BYTES, false);
	expect_standing(&first, "exit 0");
	say(&first, "again L 10 5\nagain R 16000 20000\n");
	next_of(&first, 'L');
	CHECK(frame.offset == 10 && frame.length == 5 && !memcmp(frame.content, some_bytes() + 10, 5));
	expect_file(&first, 'R', some_bytes(), 16000, FILE_BYTES); /* as far as there is any */
	say(&first, "again R 0 1\n");
	next_of(&first, 'R');
	CHECK(frame.offset == 0 && frame.length == 1);
	CHECK(end_of(&first) == 0);
	remove_run(folder);
}

static void lines_that_make_no_sense_are_passed_over(void)
{
	const char *folder = ended_run();
	char longest[1000];

	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 2] = '\n';
	longest[sizeof(longest) - 1] = '\0';
	begin(&first, folder, "one", FILE_BYTES, false);
	say(&first, longest);
	say(&first, "\n\r\nagain\nagain X 0 5\nagain L -1 5\nagain L 0 0\nagain L 0 -5\nrecord -1\nrecord\nsignals\nalive\r\n");
	say(&first, "again L 0 3\n");
	next_of(&first, 'L');
	CHECK(frame.offset == 0 && frame.length == 3);
	CHECK(end_of(&first) == 0);
	remove_run(folder);
}

static void what_a_run_prints_arrives_while_it_goes_on(void)
{
	const char *folder = run_folder();

	start_run(folder, "waits");
	begin(&first, folder, "one", 0, false);
	expect_standing(&first, "running; boot ");
	next_of(&first, 'L');
	CHECK(frame.offset == 0 && !memcmp(frame.content, "begun\n", 6));
	write_in_run(folder, "log", "more\n", 5);
	do
		next_of(&first, 'L');
	while (!memchr(frame.content, 'm', frame.length));
	say(&first, "record 0\n");
	write_in_run(folder, "run.rtrec", "record", 6);
	next_of(&first, 'R');
	CHECK(frame.length == 6 && !memcmp(frame.content, "record", 6));
	say(&first, "signal int\n");
	do
		expect_standing(&first, "");
	while (!memcmp(frame.content, "running", 7));
	CHECK(!memcmp(frame.content, "exit 0;", 7));
	CHECK(end_of(&first) == 0);
	remove_run(folder);
}

static void one_host_follows_at_a_time(void)
{
	const char *folder = ended_run();

	begin(&first, folder, "one", 0, false);
	expect_standing(&first, "exit 0");
	begin(&second, folder, "two", 0, false);
	CHECK(end_of(&second) == EXIT_BUSY);
	CHECK(!strcmp(second.got, "one follows this run"));
	CHECK(end_of(&first) == 0);
	begin(&second, folder, "two", 0, false);
	expect_standing(&second, "exit 0");
	CHECK(end_of(&second) == 0);
	remove_run(folder);
}

/* A follower whose host was killed does not know it yet. Another host waits for its end, and is told meanwhile how it stands. */
static void another_host_waits_for_one_that_may_be_gone(void)
{
	const char *folder = ended_run();
	const struct timespec long_ago[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	char path[BACKGROUND_PATH];

	begin(&first, folder, "one", FILE_BYTES, false);
	expect_standing(&first, "exit 0");
	CHECK(background_path(path, folder, "follower") && utimensat(AT_FDCWD, path, long_ago, 0) == 0);
	begin(&second, folder, "two", FILE_BYTES, false);
	expect_standing(&second, "exit 0");
	CHECK(end_of(&first) == 0);
	say(&second, "again L 0 3\n");
	next_of(&second, 'L');
	CHECK(frame.length == 3);
	CHECK(end_of(&second) == 0);
	remove_run(folder);
}

/* The connection before may hang for long: the same host need not wait for its end. */
static void a_host_takes_over_from_itself(void)
{
	const char *folder = ended_run();
	int status;

	begin(&first, folder, "one", 0, false);
	expect_standing(&first, "exit 0");
	begin(&second, folder, "one", 0, false);
	expect_standing(&second, "exit 0");
	expect_file(&second, 'L', some_bytes(), 0, FILE_BYTES);
	while (take(&first)) /* it ends although its input is still open */
		;
	CHECK(waitpid(first.pid, &status, 0) == first.pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(first.to);
	close(first.from);
	CHECK(end_of(&second) == 0);
	remove_run(folder);
}

static void a_run_of_another_boot_says_both_boots(void)
{
	static const char before[] = "01234567-89ab-cdef-0123-456789abcdef";
	const char *folder = run_folder();
	char now[BOOT_ID_ROOM], words[200];

	invent_run(folder, 2, 3, 1, before);
	write_in_run(folder, "run.rtrec", "part", 4);
	boot_id(now);
	snprintf(words, sizeof(words), "other-boot; boot %s; now %s; log -1; record 4", before, now);
	begin(&first, folder, "one", 0, false);
	expect_standing(&first, words);
	say(&first, "record 0\n");
	expect_file(&first, 'R', (const uint8_t *)"part", 0, 4);
	expect_standing(&first, "other-boot");
	CHECK(end_of(&first) == 0);
	remove_run(folder);
}

static void a_run_that_nobody_saw_end_has_vanished(void)
{
	const char *folder = run_folder();

	start_run(folder, "waits");
	begin(&first, folder, "one", 0, false);
	expect_standing(&first, "running");
	struct background run;

	CHECK(background_read(folder, &run) == 0);
	CHECK(kill(run.waiter, SIGKILL) == 0 && kill(run.agent, SIGKILL) == 0);
	do
		expect_standing(&first, "");
	while (!memcmp(frame.content, "running", 7));
	CHECK(!memcmp(frame.content, "vanished;", 9));
	CHECK(end_of(&first) == 0);
	remove_run(folder);
}

static void without_a_run_nothing_is_followed(void)
{
	const char *folder = run_folder();
	char why[256] = "";

	CHECK(follow(folder, "one", 0, false, why, sizeof(why)) == -ENOENT && strstr(why, "there is no run in"));
}

int main(int argc, char **argv)
{
	act_as_agent(argc, argv);
	sys_init();
	signal(SIGPIPE, SIG_IGN);
	log_and_record_come_from_where_the_host_was(false);
	log_and_record_come_from_where_the_host_was(true);
	what_was_damaged_on_the_way_is_sent_again();
	lines_that_make_no_sense_are_passed_over();
	one_host_follows_at_a_time();
	another_host_waits_for_one_that_may_be_gone();
	a_host_takes_over_from_itself();
	a_run_of_another_boot_says_both_boots();
	without_a_run_nothing_is_followed();
	if (!runs_can_start())
		SKIP(CANNOT_START);
	what_a_run_prints_arrives_while_it_goes_on();
	a_run_that_nobody_saw_end_has_vanished();
	return EXIT_SUCCESS;
}
