/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/collect.h"

#include "collect/paths.h"
#include "collect/probes.h"
#include "system/clock.h"
#include "system/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	PROBE_MOST = 1024 * 1024,
	ENTRIES_MOST = 16384,
	NAMES_MOST = 1024, /* of one pattern in one folder */
	TOTAL_MOST = 16 * 1024 * 1024,
	PATH_ROOM = 512,
	PATIENCE_MS = 5000, /* a read that takes longer hangs */
	HUNG_MOST = 8,
};

/*
 * The reader's lines to the collector, in the machine's own order of bytes: a head, the path, the content. An entry without
 * content announces what is read next, so that the collector can name what hangs.
 */
struct entry {
	uint8_t announced, moment;
	uint16_t path;
	int32_t err;
	uint32_t content;
};

struct reader {
	int to;
	enum moment moment;
	int pid, skip; /* so many entries were read by an earlier reader */
	int entries;
	size_t total;
	char *buffer;
};

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

static void send_entry(struct reader *reader, bool announced, const char *path, int err, const void *content, size_t length)
{
	struct entry head = {
		.announced = announced,
		.moment = (uint8_t)reader->moment,
		.path = (uint16_t)strlen(path),
		.err = err,
		.content = (uint32_t)length,
	};

	send_all(reader->to, &head, sizeof(head));
	send_all(reader->to, path, head.path);
	if (length)
		send_all(reader->to, content, length);
}

/* True if it is this reader's turn to read the path, which it has announced then. */
static bool begin_entry(struct reader *reader, const char *path)
{
	if (reader->entries >= ENTRIES_MOST || reader->total >= TOTAL_MOST || reader->entries++ < reader->skip)
		return false;
	send_entry(reader, true, path, 0, NULL, 0);
	return true;
}

static void end_entry(struct reader *reader, const char *path, int err, const void *content, size_t length)
{
	reader->total += length;
	send_entry(reader, false, path, err, content, length);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of a folder that fit the pattern, sorted, from malloc(). How many, or -errno. */
static int list_names(const char *folder, const char *pattern, char ***names)
{
	DIR *open_folder = opendir(*folder ? folder : "/");
	struct dirent *entry;
	int n = 0;

	*names = open_folder ? calloc(NAMES_MOST, sizeof(**names)) : NULL;
	if (!open_folder || !*names) {
		int err = open_folder ? -ENOMEM : -errno;

		if (open_folder)
			closedir(open_folder);
		return err;
	}
	while (n < NAMES_MOST && (entry = readdir(open_folder))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || fnmatch(pattern, entry->d_name, FNM_PERIOD))
			continue;
		(*names)[n] = strdup(entry->d_name);
		if (!(*names)[n])
			break;
		n++;
	}
	closedir(open_folder);
	qsort(*names, (size_t)n, sizeof(**names), compare_names);
	return n;
}

static void free_names(char **names, int n)
{
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static void read_folder(struct reader *reader, const char *path)
{
	struct bytes text = { NULL, 0, 0, false };
	char **names;
	int n = list_names(path, "*", &names);

	for (int i = 0; i < n; i++) {
		put_bytes(&text, names[i], strlen(names[i]));
		put_u8(&text, '\n');
	}
	end_entry(reader, path, n < 0 ? n : 0, text.data, text.length);
	free_names(n < 0 ? NULL : names, n);
	bytes_free(&text);
}

static void read_one(struct reader *reader, const char *path, enum path_kind kind)
{
	int length;

	if (!begin_entry(reader, path))
		return;
	if (kind == FOLDER_NAMES) {
		read_folder(reader, path);
		return;
	}
	if (kind == LINK_TARGET) {
		length = (int)readlink(path, reader->buffer, PATH_ROOM);
		length = length < 0 ? -errno : length;
	} else {
		length = text_read_file(path, reader->buffer, RECORD_FILE_MOST + 1);
	}
	end_entry(reader, path, length < 0 ? length : 0, reader->buffer, length < 0 ? 0 : (size_t)length);
}

/* path: what of the pattern has been found; rest: what of it is still a pattern. */
static void read_pattern(struct reader *reader, const char *path, const char *rest, enum path_kind kind)
{
	const char *star = strpbrk(rest, "*[");
	char found[PATH_ROOM], folder[PATH_ROOM], part[PATH_ROOM], **names;

	if (!star) {
		snprintf(found, sizeof(found), "%s%s", path, rest);
		read_one(reader, found, kind);
		return;
	}
	const char *begin = star;

	while (begin > rest && begin[-1] != '/')
		begin--;
	size_t length = strcspn(begin, "/");

	snprintf(folder, sizeof(folder), "%s%.*s", path, (int)(begin - rest), rest);
	snprintf(part, sizeof(part), "%.*s", (int)length, begin);
	int n = list_names(folder, part, &names);

	for (int i = 0; i < n; i++) {
		snprintf(found, sizeof(found), "%s%s", folder, names[i]);
		read_pattern(reader, found, begin + length, kind);
	}
	free_names(n < 0 ? NULL : names, n);
}

/* A pattern that fits nothing stands in the record itself, so that the host can tell it from one that was not looked for. */
static void read_path(struct reader *reader, const struct audit_path *path)
{
	int before = reader->entries;
	char **names, folder[PATH_ROOM];

	read_pattern(reader, "", path->pattern, path->kind);
	if (reader->entries > before || !begin_entry(reader, path->pattern))
		return;
	const char *star = strpbrk(path->pattern, "*[");

	snprintf(folder, sizeof(folder), "%.*s", (int)(star - path->pattern), path->pattern);
	*(strrchr(folder, '/') + 1) = '\0';
	int n = list_names(folder, "*", &names);

	free_names(n < 0 ? NULL : names, n);
	end_entry(reader, path->pattern, n < 0 ? n : -ENOENT, NULL, 0);
}

static void ask_probe(struct reader *reader, const struct audit_probe *probe)
{
	struct bytes text = { NULL, 0, 0, false };

	if (!begin_entry(reader, probe->name))
		return;
	int err = probe->collect(&text, reader->pid);

	end_entry(reader, probe->name, text.failed ? -ENOMEM : err, text.data, text.length < PROBE_MOST ? text.length : PROBE_MOST);
	bytes_free(&text);
}

static void read_everything(struct reader *reader)
{
	bool again = reader->moment == MOMENT_END;

	for (const struct audit_path *path = audit_paths; path->pattern; path++)
		if (!again || path->kind == FILE_COUNTS)
			read_path(reader, path);
	for (const struct audit_probe *probe = audit_probes; probe->name; probe++)
		if ((!again || probe->counts) && (!probe->of_process || reader->pid))
			ask_probe(reader, probe);
}

static int start_reader(struct reader *reader, pid_t *child)
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
		close(ends[0]);
		signal(SIGPIPE, SIG_IGN);
		reader->to = ends[1];
		reader->buffer = malloc(RECORD_FILE_MOST + 1);
		if (reader->buffer)
			read_everything(reader);
		_exit(reader->buffer ? 0 : 1);
	}
	close(ends[1]);
	return ends[0];
}

/* Exactly n bytes. 0: the reader has ended; -ETIMEDOUT: it says nothing any more. */
static int receive(int from, void *data, size_t n)
{
	char *at = data;

	while (n) {
		struct pollfd source = { .fd = from, .events = POLLIN };
		int ready = poll(&source, 1, PATIENCE_MS);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return ready ? -errno : -ETIMEDOUT;
		ssize_t came = read(from, at, n);

		if (came < 0 && errno == EINTR)
			continue;
		if (came <= 0)
			return came ? -errno : 0;
		at += came;
		n -= (size_t)came;
	}
	return 1;
}

static void keep(struct bytes *entries, const struct entry *head, const char *path, const void *content)
{
	put_bytes(entries, head, sizeof(*head));
	put_bytes(entries, path, head->path);
	if (head->content)
		put_bytes(entries, content, head->content);
}

/* Until the reader ends or hangs. current: what it was reading. How many entries came whole, in read. */
static int listen_to(int from, struct collection *collection, char *buffer, char *current, int *read)
{
	struct entry head;
	int answer;

	*current = '\0';
	while ((answer = receive(from, &head, sizeof(head))) > 0) {
		char path[PATH_ROOM];

		if (head.path >= PATH_ROOM || head.content > PROBE_MOST)
			return -EPROTO;
		answer = receive(from, path, head.path);
		path[head.path] = '\0';
		if (answer > 0 && head.content)
			answer = receive(from, buffer, head.content);
		if (answer <= 0)
			break;
		snprintf(current, PATH_ROOM, "%s", head.announced ? path : "");
		if (head.announced)
			continue;
		keep(&collection->entries, &head, path, buffer);
		(*read)++;
	}
	return answer;
}

static void end_reader(pid_t child)
{
	/* One that waits for a driver cannot be killed, so it is not waited for. */
	for (int i = 0; i < 100 && waitpid(child, NULL, WNOHANG) == 0; i++) {
		kill(child, SIGKILL);
		usleep(1000);
	}
}

static void keep_hung(struct collection *collection, enum moment moment, const char *path)
{
	const struct entry head = { .moment = (uint8_t)moment, .path = (uint16_t)strlen(path), .err = -ETIMEDOUT };

	collection->hung++;
	keep(&collection->entries, &head, path, NULL);
}

static int collect(struct collection *collection, enum moment moment, int pid)
{
	struct reader reader = { .moment = moment, .pid = pid };
	char *buffer = malloc(PROBE_MOST), current[PATH_ROOM];
	int answer = buffer ? -ETIMEDOUT : -ENOMEM;

	for (int i = 0; buffer && i < HUNG_MOST && answer == -ETIMEDOUT; i++) {
		pid_t child = 0;
		int from = start_reader(&reader, &child), read = 0;

		if (from < 0) {
			answer = from;
			break;
		}
		answer = listen_to(from, collection, buffer, current, &read);
		close(from);
		end_reader(child);
		reader.skip += read;
		if (answer != -ETIMEDOUT && *current && !answer)
			answer = -ETIMEDOUT; /* it died of what it read */
		if (answer == -ETIMEDOUT && *current) {
			keep_hung(collection, moment, current);
			reader.skip++;
		}
	}
	free(buffer);
	return collection->entries.failed ? -ENOMEM : answer == -ETIMEDOUT ? 0 : answer;
}

int collect_start(struct collection *collection, int pid)
{
	return collect(collection, MOMENT_START, pid);
}

int collect_again(struct collection *collection, int pid)
{
	return collect(collection, MOMENT_END, pid);
}

int collect_write(struct collection *collection, struct record *record, int64_t time_ns)
{
	const uint8_t *at = collection->entries.data, *end = at + collection->entries.length;
	int err = 0;

	while (at < end && !err) {
		struct entry head;
		char path[PATH_ROOM];

		memcpy(&head, at, sizeof(head));
		memcpy(path, at + sizeof(head), head.path);
		path[head.path] = '\0';
		at += sizeof(head) + head.path;
		err = record_content_at_most(record, time_ns, (enum moment)head.moment, path, head.err, (const char *)at,
					     head.content, *path == '/' ? RECORD_FILE_MOST : PROBE_MOST);
		at += head.content;
	}
	collect_free(collection);
	return err;
}

void collect_free(struct collection *collection)
{
	bytes_free(&collection->entries);
}

void collect_list(void)
{
	static const char *const kinds[] = { "file", "counts", "folder", "link" };

	for (const struct audit_path *path = audit_paths; path->pattern; path++)
		printf("%s\t%s\n", kinds[path->kind], path->pattern);
	for (const struct audit_probe *probe = audit_probes; probe->name; probe++)
		printf("probe\t%s\t%s\n", probe->name, probe->help);
}
