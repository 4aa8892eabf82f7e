/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/collect.h"

#include "collect/lines.h"
#include "system/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	PATIENCE_MS = 5000,
	HUNG_MOST = 4,
	READERS_MOST = 16,
	FILES_CLOSED = 256,
	KILL_TRIES = 100,
	FACT_MOST = 1900,
	LEFT_OUT_MOST = 8192,
	ROUNDS_MOST = 12,
	WORK_MOST_S = 30,
};

/* The other end of a reader's pipe. */
struct ear {
	int from, patience_ms;
	pid_t reader;
};

const struct collect_plan collect_for_run = { audit_paths, NULL, run_paths, audit_probes, PATIENCE_MS, OF_RUN_MOST };
const struct collect_plan collect_for_facts = { audit_paths, run_paths, NULL, audit_probes, PATIENCE_MS, FACTS_MOST };

static void send_all(int to, const void *data, size_t n)
{
	const char *at = data;

	while (n) {
		ssize_t sent = write(to, at, n);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			_exit(1); /* the collector is gone */
		at += sent;
		n -= (size_t)sent;
	}
}

/* The way of a separate reader: through a pipe. */
static void send_to_collector(struct reader *reader, const struct audit_entry *head, const char *path, const void *content)
{
	const int to = reader->pipe;

	send_all(to, head, sizeof(*head));
	send_all(to, path, head->path);
	if (head->content)
		send_all(to, content, head->content);
}

static void keep_left_out(struct collection *collection, const char *what, const char *why, size_t length)
{
	char line[PATH_ROOM + 128];
	struct bytes *all = &collection->left_out;
	int n = snprintf(line, sizeof(line), "%s: %.*s; ", what, (int)(length < 100 ? length : 100), why ? why : "");

	if (all->length > LEFT_OUT_MOST)
		return;
	if (!all->length || !memmem(all->data, all->length, line, (size_t)n)) /* each new reader says it again */
		put_bytes(all, line, (size_t)n);
}

/* path: ends with a zero. */
static void keep(struct collection *collection, const struct audit_entry *head, const char *path, const void *content)
{
	if (head->kind == ENTRY_LEFT_OUT)
		keep_left_out(collection, path, content, head->content);
	if (head->kind != ENTRY_CONTENT)
		return;
	put_bytes(&collection->entries, head, sizeof(*head));
	put_bytes(&collection->entries, path, head->path);
	if (head->content)
		put_bytes(&collection->entries, content, head->content);
}

/* The way of a reader that is this process. */
static void keep_at_once(struct reader *reader, const struct audit_entry *head, const char *path, const void *content)
{
	char copy[PATH_ROOM];

	snprintf(copy, sizeof(copy), "%.*s", (int)head->path, path);
	keep(reader->to, head, copy, content);
}

/* The entry at a place of what was kept, and the place of the next. */
static const uint8_t *next_entry(const uint8_t *at, struct audit_entry *head, char path[PATH_ROOM], const char **content)
{
	memcpy(head, at, sizeof(*head));
	memcpy(path, at + sizeof(*head), head->path);
	path[head->path] = '\0';
	*content = (const char *)at + sizeof(*head) + head->path;
	return at + sizeof(*head) + head->path + head->content;
}

static void skip_kept(struct reader *reader, const struct collection *collection)
{
	const uint8_t *at = collection->entries.data, *end = at + collection->entries.length;
	struct audit_entry head;
	char path[PATH_ROOM];
	const char *content;

	while (at < end) {
		at = next_entry(at, &head, path, &content);
		reader_skip(reader, path, head.content);
	}
}

/*
 * A reader that hangs outlives the agent. It must not keep a pipe of the host open, a record or a lock, and must not die of what
 * concerns the agent alone. A signal that the agent has blocked or ignored would change what the probes see.
 */
static void become_reader(int to)
{
	sigset_t none;

	static const int reset[] = { SIGCHLD, SIGALRM, SIGINT, SIGTERM, SIGHUP, SIGXFSZ };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < sizeof(reset) / sizeof(*reset); i++)
		signal(reset[i], SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int fd = 0; fd < FILES_CLOSED; fd++)
		if (fd != to)
			close(fd);
	for (int i = 0; i < 3; i++)
		(void)open("/dev/null", O_RDWR); /* what a library writes to 1 or 2 must not reach a file of the system */
}

static int start_reader(struct reader *reader, const struct collection *collection, pid_t *child)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	*child = fork();
	if (*child < 0) {
		int err = -errno;

		close(ends[0]);
		close(ends[1]);
		return err;
	}
	if (!*child) {
		become_reader(ends[1]);
		reader->pipe = ends[1];
		reader->send = send_to_collector;
		if (reader_open(reader))
			_exit(1);
		skip_kept(reader, collection);
		reader_read(reader);
		_exit(0);
	}
	close(ends[1]);
	return ends[0];
}

/* Of a reader that says nothing: how often it was looked at and waited only for a CPU, or was stopped; its CPU time at the first look. */
struct silence {
	int rounds;
	int64_t ticks;
};

/*
 * Whether it is nevertheless at work, or was stopped: a slow or busy machine hangs in nothing, and who stops the agent stops the reader,
 * too. If it has something to say by now, it is.
 */
static bool is_at_work(const struct ear *ear, struct pollfd *source, struct silence *silence)
{
	struct process before, after;

	if (processes_look(ear->reader, &before))
		return false;
	if (silence->ticks < 0)
		silence->ticks = before.cpu_ticks;
	if (poll(source, 1, ear->patience_ms / 5) != 0)
		return true;
	if (processes_look(ear->reader, &after))
		return false;
	if (after.cpu_ticks != before.cpu_ticks)
		return after.cpu_ticks - silence->ticks < WORK_MOST_S * sysconf(_SC_CLK_TCK);
	return strchr("RTt", after.state) && silence->rounds++ < ROUNDS_MOST;
}

/* Exactly n bytes. 1; 0: the reader has ended; -ETIMEDOUT: it says nothing any more. */
static int receive(const struct ear *ear, void *data, size_t n)
{
	char *at = data;
	struct silence silence = { 0, -1 };

	while (n) {
		struct pollfd source = { .fd = ear->from, .events = POLLIN };
		int ready = poll(&source, 1, ear->patience_ms);

		if (ready < 0 && errno == EINTR)
			continue;
		if (!ready && is_at_work(ear, &source, &silence))
			continue;
		if (ready <= 0)
			return ready ? -errno : -ETIMEDOUT;
		ssize_t came = read(ear->from, at, n);

		if (came < 0 && errno == EINTR)
			continue;
		if (came <= 0)
			return came ? -errno : 0;
		at += came;
		n -= (size_t)came;
	}
	return 1;
}

/* 0: the reader is done; -EPIPE: it ended before; -ETIMEDOUT: it hangs. current: what it was reading, or "". */
static int listen_to(const struct ear *ear, struct collection *collection, char *buffer, char *current)
{
	struct audit_entry head = { .kind = ENTRY_DONE };
	char path[PATH_ROOM];

	*current = '\0';
	for (;;) {
		int answer = receive(ear, &head, sizeof(head));

		if (answer > 0 && (head.path >= PATH_ROOM || head.content > PROBE_MOST))
			return -EPROTO;
		if (answer > 0)
			answer = receive(ear, path, head.path);
		if (answer > 0)
			answer = receive(ear, buffer, head.content);
		if (answer <= 0)
			return answer ? answer : -EPIPE;
		if (head.kind == ENTRY_DONE)
			return 0;
		path[head.path] = '\0';
		keep(collection, &head, path, buffer);
		if (head.kind != ENTRY_LEFT_OUT)
			snprintf(current, PATH_ROOM, "%s", head.kind == ENTRY_ANNOUNCED ? path : "");
	}
}

static void end_reader(pid_t child)
{
	/* One that waits for a driver cannot be killed, so it is not waited for. */
	for (int i = 0; i < KILL_TRIES && waitpid(child, NULL, WNOHANG) == 0; i++) {
		kill(child, SIGKILL);
		usleep(1000);
	}
}

static int read_in_place(struct collection *collection, struct reader *reader, int why)
{
	int err = reader_open(reader);

	collection->in_place = why;
	if (!err) {
		skip_kept(reader, collection);
		reader->send = keep_at_once;
		reader->to = collection;
		reader_read(reader);
	}
	reader_close(reader);
	return err;
}

/* What a reader was at when it hung, or died, will not be tried by the next. */
static void keep_failed(struct collection *collection, enum moment moment, const char *path, int err)
{
	const struct audit_entry head = { .kind = ENTRY_CONTENT, .moment = (uint8_t)moment, .path = (uint16_t)strlen(path), .err = err };

	keep(collection, &head, path, NULL);
}

static void keep_given_up(struct collection *collection, const char *why)
{
	keep_left_out(collection, "all that was not read yet", why, strlen(why));
}

/* Readers, one after the other, until one is done. */
static int read_apart(struct collection *collection, struct reader *reader, char *buffer)
{
	char current[PATH_ROOM];

	for (int i = 0; i < READERS_MOST; i++) {
		pid_t child = 0;
		int from = start_reader(reader, collection, &child);

		if (from < 0)
			return read_in_place(collection, reader, from);
		const struct ear ear = { from, reader->plan->patience_ms, child };
		int answer = listen_to(&ear, collection, buffer, current);

		close(from);
		end_reader(child);
		if (!answer || collection->entries.failed)
			return 0;
		collection->hung += answer == -ETIMEDOUT;
		collection->died += answer != -ETIMEDOUT;
		if (*current)
			keep_failed(collection, reader->moment, current, answer == -ETIMEDOUT ? answer : -EIO);
		if (collection->hung >= HUNG_MOST) {
			keep_given_up(collection, "too many reads hung");
			return 0;
		}
	}
	keep_given_up(collection, "the process that reads died again and again");
	return collection->entries.length ? 0 : -EIO;
}

int collect_system(struct collection *collection, const struct collect_plan *plan, enum moment moment, int pid)
{
	struct reader reader = { .plan = plan, .moment = moment, .pid = pid };
	char *buffer = malloc(PROBE_MOST);

	collection->err = buffer ? read_apart(collection, &reader, buffer) : -ENOMEM;
	free(buffer);
	if (collection->entries.failed) { /* what is there may end within an entry */
		bytes_free(&collection->entries);
		collection->err = -ENOMEM;
	}
	return collection->err;
}

static void write_facts(const struct collection *collection, struct record *record, int64_t time_ns, enum moment moment)
{
	if (collection->err)
		record_fact(record, time_ns, WHOLE_RUN, moment, "not_collected", "%s", strerror(-collection->err));
	record_fact(record, time_ns, WHOLE_RUN, moment, "reads_hung", "%d", collection->hung);
	if (collection->died)
		record_fact(record, time_ns, WHOLE_RUN, moment, "readers_died", "%d", collection->died);
	if (collection->in_place)
		record_fact(record, time_ns, WHOLE_RUN, moment, "collected_in_place", "no process could be made to read: %s",
			    strerror(-collection->in_place));
	const struct bytes *left_out = &collection->left_out;

	if (left_out->length > 2) /* without the last "; " */
		record_fact(record, time_ns, WHOLE_RUN, moment, "left_out", "%.*s%s",
			    left_out->length < FACT_MOST ? (int)left_out->length - 2 : FACT_MOST, (const char *)left_out->data,
			    left_out->length < FACT_MOST ? "" : "... and more");
}

int collect_write(struct collection *collection, struct record *record, int64_t time_ns, enum moment moment)
{
	const uint8_t *at = collection->entries.data, *end = at + collection->entries.length;
	int err = 0;

	while (at < end && !err) {
		struct audit_entry head;
		char path[PATH_ROOM];
		const char *content;

		at = next_entry(at, &head, path, &content);
		/* What was cut is said to be cut, at the cost of its last byte. */
		err = record_content_at_most(record, time_ns, (enum moment)head.moment, path, head.err, content, head.content,
					     head.cut && head.content ? head.content - 1 : head.content);
	}
	write_facts(collection, record, time_ns, moment);
	collect_free(collection);
	return err;
}

void collect_free(struct collection *collection)
{
	bytes_free(&collection->entries);
	bytes_free(&collection->left_out);
	memset(collection, 0, sizeof(*collection));
}

static void list_paths(const struct audit_path *path)
{
	static const char *const kinds[] = { "file", "counts", "folder", "link" };

	for (; path->pattern; path++)
		printf("%s\t%s\n", kinds[path->kind], path->pattern);
}

void collect_list(void)
{
	list_paths(audit_paths);
	list_paths(run_paths);
	for (const struct audit_probe *probe = audit_probes; probe->name; probe++)
		printf("probe\t%s\t%s\n", probe->name, probe->help);
}
