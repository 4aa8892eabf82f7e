/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/reader.h"

#include "collect/automounts.h"
#include "collect/lines.h"
#include "system/text.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MOST = 1024, SEEN_ROOM = 2 * ENTRIES_MOST, CHUNK_BYTES = 40, LEVELS_MOST = 4 };

/*
 * The names of a folder that fit a pattern, sorted. folders: only those that may be of folders. err: 0; -E2BIG: there are more; or
 * another -errno, and some may be missing.
 */
struct names {
	char **each;
	int n, err;
	bool folders;
};

/* One part of a pattern that stands for many names of a folder, and the next of them; behind: what of the pattern follows. */
struct level {
	char pattern[PATH_ROOM], folder[PATH_ROOM];
	const char *behind;
	struct names names;
	int next;
};

static void send_entry(struct reader *reader, enum audit_entry_kind kind, const char *path, int err, const struct bytes *content)
{
	const bool cut = err == TEXT_IS_CUT;
	const struct audit_entry head = {
		.kind = (uint8_t)kind,
		.moment = (uint8_t)reader->moment,
		.cut = cut,
		.path = (uint16_t)strnlen(path, PATH_ROOM - 1),
		.err = cut ? 0 : err,
		.content = content ? (uint32_t)content->length : 0,
	};

	reader->send(reader, &head, path, content ? content->data : NULL);
}

static void leave_out(struct reader *reader, const char *what, const char *why)
{
	const struct audit_entry head = {
		.kind = ENTRY_LEFT_OUT,
		.moment = (uint8_t)reader->moment,
		.path = (uint16_t)strnlen(what, PATH_ROOM - 1),
		.content = (uint32_t)strlen(why),
	};

	reader->send(reader, &head, what, why);
}

/* FNV-1a; never 0, which means an empty place. Two paths of the same hash come once in 10^11 audits. */
static uint64_t hash(const char *path)
{
	uint64_t value = UINT64_C(0xcbf29ce484222325);

	for (; *path; path++)
		value = (value ^ (uint8_t)*path) * UINT64_C(0x100000001b3);
	return value ? value : 1;
}

/* Where the path stands in the set, or would. */
static uint64_t *find_seen(struct reader *reader, uint64_t value)
{
	size_t at = (size_t)(value % SEEN_ROOM);

	while (reader->seen[at] && reader->seen[at] != value)
		at = (at + 1) % SEEN_ROOM;
	return &reader->seen[at];
}

/* True if it was not there yet. */
static bool add_seen(struct reader *reader, const char *path)
{
	uint64_t value = hash(path), *place = find_seen(reader, value);

	if (*place)
		return false;
	if (reader->entries < ENTRIES_MOST)
		*place = value;
	return true;
}

/* True if it is to be read now, which has been announced then. */
static bool begin_entry(struct reader *reader, const char *path)
{
	if (reader->full || !add_seen(reader, path))
		return false;
	if (reader->entries >= ENTRIES_MOST || reader->total >= reader->plan->most) {
		reader->full = true;
		leave_out(reader, path, reader->entries >= ENTRIES_MOST ? "and all behind it: there are too many files" :
									   "and all behind it: the files are too long together");
		return false;
	}
	reader->entries++;
	send_entry(reader, ENTRY_ANNOUNCED, path, 0, NULL);
	return true;
}

static void end_entry(struct reader *reader, const char *path, int err, const struct bytes *content)
{
	reader->total += CHUNK_BYTES + strlen(path) + (content ? content->length : 0);
	send_entry(reader, ENTRY_CONTENT, path, err, content);
}

/* Why something that fits the pattern is not known. */
static void report(struct reader *reader, const char *path, int err)
{
	reader->fits++;
	if (begin_entry(reader, path))
		end_entry(reader, path, err, NULL);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A link may lead to a folder, and some file systems do not tell. */
static bool may_be_folder(const struct dirent *entry)
{
	return entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
}

static bool is_wanted(const struct dirent *entry, const char *pattern, bool folders)
{
	const char *name = entry->d_name;

	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !fnmatch(pattern, name, FNM_PERIOD) &&
	       (!folders || may_be_folder(entry));
}

static void read_names(DIR *folder, const char *pattern, struct names *names)
{
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(folder);

		if (!entry) {
			names->err = -errno;
			return;
		}
		if (!is_wanted(entry, pattern, names->folders))
			continue;
		names->err = names->n == NAMES_MOST ? -E2BIG : 0;
		char *copy = names->err ? NULL : strdup(entry->d_name);

		if (!copy) {
			names->err = names->err ? names->err : -ENOMEM;
			return;
		}
		names->each[names->n++] = copy;
	}
}

static void list_names(const char *folder, const char *pattern, struct names *names)
{
	DIR *open_folder = opendir(*folder ? folder : "/");

	names->n = 0;
	names->err = open_folder ? 0 : -errno;
	names->each = open_folder ? calloc(NAMES_MOST, sizeof(*names->each)) : NULL;
	if (!open_folder)
		return;
	if (names->each)
		read_names(open_folder, pattern, names);
	else
		names->err = -ENOMEM;
	closedir(open_folder);
	if (names->n)
		qsort(names->each, (size_t)names->n, sizeof(*names->each), compare_names);
}

static void free_names(struct names *names)
{
	for (int i = 0; i < names->n; i++)
		free(names->each[i]);
	free(names->each);
}

static void read_folder(struct reader *reader, const char *path)
{
	struct bytes text = { NULL, 0, 0, false };
	struct names names = { .folders = false };

	list_names(path, "*", &names);
	for (int i = 0; i < names.n; i++) {
		put_bytes(&text, names.each[i], strlen(names.each[i]));
		put_u8(&text, '\n');
	}
	if (names.err == -E2BIG)
		leave_out(reader, path, "there are more than 1024 names");
	int err = text.failed ? -ENOMEM : names.err == -E2BIG ? TEXT_IS_CUT : names.err;

	if (err < 0)
		text.length = 0;
	end_entry(reader, path, err, &text);
	free_names(&names);
	bytes_free(&text);
}

/* expanded: from a pattern, whose star also stands for files where only a folder makes sense: what is below a file is not told. */
static void read_one(struct reader *reader, const char *path, enum path_kind kind, bool expanded)
{
	int length;

	reader->fits++;
	if (!begin_entry(reader, path))
		return;
	if (automounts_wait(path)) {
		end_entry(reader, path, NOT_MOUNTED_YET, NULL);
		return;
	}
	if (kind == FOLDER_NAMES) {
		read_folder(reader, path);
		return;
	}
	if (kind == LINK_TARGET) {
		length = (int)readlink(path, reader->buffer, RECORD_FILE_MOST);
		length = length < 0 ? -errno : length;
	} else {
		length = text_read_file(path, reader->buffer, RECORD_FILE_MOST + 1);
	}
	if (expanded && length == -ENOTDIR) {
		reader->fits--; /* it still counts as an entry, because it stands in the set of what was read */
		return;
	}
	const bool cut = length > RECORD_FILE_MOST;
	const struct bytes content = { (uint8_t *)reader->buffer, length < 0 ? 0 : cut ? RECORD_FILE_MOST : (size_t)length, 0, false };

	end_entry(reader, path, length < 0 ? length : cut ? TEXT_IS_CUT : 0, &content);
}

/* Joins two parts of a path. False: there is no room, and that has been said. */
static bool join(struct reader *reader, char path[PATH_ROOM], const char *first, const char *second)
{
	if ((size_t)snprintf(path, PATH_ROOM, "%s%s", first, second) < PATH_ROOM)
		return true;
	leave_out(reader, path, "the path is too long");
	reader->fits++;
	return false;
}

static void split(const char *rest, char folder[PATH_ROOM], char part[PATH_ROOM], const char **behind)
{
	const char *begin = strpbrk(rest, "*[");

	while (begin > rest && begin[-1] != '/')
		begin--;
	*behind = begin + strcspn(begin, "/");
	snprintf(folder, PATH_ROOM, "%.*s", (int)(begin - rest), rest);
	snprintf(part, PATH_ROOM, "%.*s", (int)(*behind - begin), begin);
}

/* Announces that a folder is listed, which may hang, too. False: it did, and the pattern stands in the record for that. */
static bool begin_list(struct reader *reader, const char *pattern)
{
	if (*find_seen(reader, hash(pattern))) {
		reader->fits++;
		return false;
	}
	send_entry(reader, ENTRY_ANNOUNCED, pattern, 0, NULL);
	return true;
}

/* Lists the folder of the pattern's first part with a star. path: what stands before the rest. False: it was not. */
static bool enter(struct reader *reader, struct level *level, const char *path, const char *rest)
{
	char found[PATH_ROOM], part[PATH_ROOM];

	split(rest, found, part, &level->behind);
	if (!join(reader, level->folder, path, found) || !join(reader, level->pattern, path, rest) ||
	    !begin_list(reader, level->pattern))
		return false;
	level->next = 0;
	level->names = (struct names){ .err = NOT_MOUNTED_YET, .folders = *level->behind };
	if (!automounts_wait(level->folder))
		list_names(level->folder, part, &level->names);
	return true;
}

/* Some of what fits is not known: the record has the rest of the pattern with the reason. */
static void leave(struct reader *reader, struct level *level)
{
	const int err = level->names.err;

	if (err && err != -ENOENT && err != -ENOTDIR) {
		if (err == -E2BIG)
			leave_out(reader, level->pattern, "there are more than 1024 names");
		report(reader, level->pattern, err);
	}
	free_names(&level->names);
}

static void read_pattern(struct reader *reader, const char *pattern, enum path_kind kind)
{
	struct level levels[LEVELS_MOST];
	char found[PATH_ROOM], path[PATH_ROOM];
	int depth = enter(reader, &levels[0], "", pattern);

	while (depth) {
		struct level *level = &levels[depth - 1];

		if (level->next >= level->names.n || reader->full) {
			leave(reader, level);
			depth--;
			continue;
		}
		if (!join(reader, found, level->folder, level->names.each[level->next++]))
			continue;
		if (strpbrk(level->behind, "*[") && depth < LEVELS_MOST)
			depth += enter(reader, &levels[depth], found, level->behind);
		else if (join(reader, path, found, level->behind))
			read_one(reader, path, kind, true);
	}
}

/* A pattern that fits nothing stands in the record itself, so that the host can tell it from one that was not looked for. */
static void read_path(struct reader *reader, const struct audit_path *path)
{
	char whole[PATH_ROOM];

	reader->fits = 0;
	if (strpbrk(path->pattern, "*["))
		read_pattern(reader, path->pattern, path->kind);
	else if (join(reader, whole, path->pattern, ""))
		read_one(reader, whole, path->kind, false);
	if (!reader->fits)
		report(reader, path->pattern, -ENOENT);
}

static void read_table(struct reader *reader, const struct audit_path *path)
{
	for (; path && path->pattern && !reader->full; path++)
		if (reader->moment != MOMENT_END || path->kind == FILE_COUNTS)
			read_path(reader, path);
}

static void ask_probe(struct reader *reader, const struct audit_probe *probe)
{
	struct bytes text = { NULL, 0, 0, false };

	if (!begin_entry(reader, probe->name))
		return;
	int err = probe->collect(&text, reader->pid);

	if (text.failed)
		err = -ENOMEM;
	if (err < 0)
		text.length = 0;
	if (text.length > PROBE_MOST) {
		text.length = PROBE_MOST;
		err = TEXT_IS_CUT;
	}
	end_entry(reader, probe->name, err, &text);
	bytes_free(&text);
}

int reader_open(struct reader *reader)
{
	reader->entries = 0;
	reader->total = 0;
	reader->full = false;
	reader->seen = calloc(SEEN_ROOM, sizeof(*reader->seen));
	reader->buffer = malloc(RECORD_FILE_MOST + 1);
	if (!reader->seen || !reader->buffer)
		return -ENOMEM;
	for (const struct audit_path *path = reader->plan->without; path && path->pattern; path++)
		add_seen(reader, path->pattern);
	return 0;
}

void reader_close(struct reader *reader)
{
	free(reader->seen);
	free(reader->buffer);
}

void reader_skip(struct reader *reader, const char *path, size_t length)
{
	if (add_seen(reader, path))
		reader->entries++;
	reader->total += CHUNK_BYTES + strlen(path) + length;
}

void reader_read(struct reader *reader)
{
	read_table(reader, reader->plan->paths);
	read_table(reader, reader->plan->more);
	for (const struct audit_probe *probe = reader->plan->probes; probe->name; probe++)
		if ((reader->moment != MOMENT_END || probe->counts) && (!probe->of_process || reader->pid))
			ask_probe(reader, probe);
	send_entry(reader, ENTRY_DONE, "", 0, NULL);
}
