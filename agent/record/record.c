/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "record/record.h"

#include "record/bytes.h"
#include "system/clock.h"
#include "system/text.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

enum {
	CHUNK_MAGIC = 0x1a505452, /* "RTP", SUB */
	CHUNK_HEADER = 20,
	CHUNK_CRC_AT = 16,
	CONTENT_MOST = 1024 * 1024,
};

int record_open(struct record *record, const char *path)
{
	bool file = strcmp(path, "-") != 0;

	memset(record, 0, sizeof(*record));
	record->reserve = RECORD_RESERVE;
	if (file)
		record->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	else
		record->fd = dup(STDOUT_FILENO);
	if (record->fd < 0)
		return -errno;

	struct stat status;
	bool regular = fstat(record->fd, &status) == 0 && S_ISREG(status.st_mode);

	record->seekable = record->reserving = regular && file;
	record->before = regular ? status.st_size : -1;
	record->unsynced_path = record->seekable ? path : NULL;
	return 0;
}

int64_t record_size_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)limit.rlim_cur;
}

/* The file system may promise room that the limit on the size of files denies, so what the run keeps is measured against it too. */
static void check_size_limit(struct record *record, size_t n)
{
	if (record->before >= 0 && record->before + record->end + (int64_t)n + record->reserve > record_size_limit())
		record->no_space = record->limited = true;
}

/* What waits for a host, with a chunk of n bytes. */
static int64_t waiting(const struct record *record, size_t n)
{
	return record->end - record->delivered + (int64_t)n;
}

static void check_buffer(struct record *record, size_t n)
{
	if (record->buffer && waiting(record, n) + record->reserve > record->buffer)
		record->no_space = record->overrun = true;
}

bool chunk_is_dropped(struct record *record)
{
	int64_t room = record->buffer - record->reserve;

	if (!record->buffer)
		return false;
	record->behind = waiting(record, record->chunk.length) > (record->behind ? room / 2 : room - room / 4);
	return record->behind;
}

struct bytes *chunk_begin(struct record *record, enum chunk_type type)
{
	struct bytes *chunk = &record->chunk;

	chunk->length = 0;
	chunk->failed = false;
	put_u32(chunk, CHUNK_MAGIC);
	put_u32(chunk, 0);
	put_u16(chunk, (uint16_t)type);
	put_u16(chunk, 0);
	put_u32(chunk, record->sequence);
	put_u32(chunk, 0);
	return chunk;
}

bool means_full(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EFBIG;
}

/*
 * Keeps room allocated behind the end of the file. When that fails for want of space there is still what the last call
 * got, enough for the last checkpoint and END; the run must end now. File systems without it get no reserve.
 */
static void renew_reserve(struct record *record, size_t n)
{
	if (!record->reserving || record->end + (int64_t)n + record->reserve / 2 <= record->reserved_to)
		return;
	if (fallocate(record->fd, FALLOC_FL_KEEP_SIZE, record->end, (off_t)n + (off_t)record->reserve) == 0) {
		record->reserved_to = record->end + (int64_t)n + record->reserve;
	} else {
		record->no_space = means_full(-errno);
		record->reserving = false;
	}
}

void record_has_room_again(struct record *record)
{
	if (record->limited || record->overrun || record->error)
		return;
	record->was_full = true;
	record->no_space = false;
	record->reserving = record->seekable;
	record->reserve = RECORD_RESERVE / 4;
}

/* A chunk that did not fit is taken back, so that the file ends with a whole one. */
static int give_up(struct record *record, int err)
{
	record->error = err;
	record->no_space = record->no_space || means_full(err);
	if (record->seekable && ftruncate(record->fd, (off_t)record->end) == 0)
		(void)lseek(record->fd, (off_t)record->end, SEEK_SET);
	return err;
}

static int write_all(struct record *record)
{
	size_t done = 0;

	while (done < record->chunk.length) {
		ssize_t n = write(record->fd, record->chunk.data + done, record->chunk.length - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return give_up(record, -errno);
		done += (size_t)n;
	}
	record->end += (int64_t)done;
	return 0;
}

int chunk_end(struct record *record)
{
	struct bytes *chunk = &record->chunk;
	uint32_t payload = (uint32_t)(chunk->length - CHUNK_HEADER);

	put_bytes(chunk, "\0\0\0", (4 - payload % 4) % 4);
	if (record->error)
		return record->error;
	if (chunk->failed)
		return give_up(record, -ENOMEM);
	set_number(chunk->data + 4, payload, 4);

	uint32_t crc = crc32_update(0, chunk->data, CHUNK_CRC_AT);

	crc = crc32_update(crc, chunk->data + CHUNK_HEADER, payload);
	set_number(chunk->data + CHUNK_CRC_AT, crc, 4);
	renew_reserve(record, chunk->length);
	check_size_limit(record, chunk->length);
	check_buffer(record, chunk->length);

	int err = write_all(record);

	if (!err)
		record->sequence++;
	return err;
}

/* A new file's name is on the medium only after its folder is. File systems that can't do that refuse, and lose nothing. */
static void sync_folder_of(const char *path)
{
	char copy[4096];

	snprintf(copy, sizeof(copy), "%s", path);
	int folder = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0)
		return;
	fsync(folder);
	close(folder);
}

int record_flush(struct record *record)
{
	if (record->error)
		return record->error;
	int err;

	do
		err = fdatasync(record->fd) < 0 ? -errno : 0;
	while (err == -EINTR);
	if (err && err != -EINVAL && err != -EROFS) /* pipes can't */
		return give_up(record, err);
	if (record->unsynced_path)
		sync_folder_of(record->unsynced_path);
	record->unsynced_path = NULL;
	return 0;
}

int record_close(struct record *record)
{
	int err = record->error;

	/* Gives back what was reserved behind the end. */
	if (record->seekable && ftruncate(record->fd, (off_t)record->end) < 0 && !err)
		err = -errno;
	if (!err)
		err = record_flush(record);
	if (close(record->fd) < 0 && !err)
		err = -errno;
	bytes_free(&record->chunk);
	return err;
}

int record_fact(struct record *record, int64_t time_ns, int thread, enum moment moment, const char *key,
		const char *format, ...)
{
	char value[2048];
	va_list arguments;
	struct bytes *chunk = chunk_begin(record, CHUNK_FACT);

	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	put_i64(chunk, time_ns);
	put_u16(chunk, (uint16_t)thread);
	put_u8(chunk, (uint8_t)moment);
	put_string(chunk, key);
	put_string(chunk, value);
	return chunk_end(record);
}

int record_event(struct record *record, int64_t time_ns, int thread, const char *kind, const char *text)
{
	struct bytes *chunk = chunk_begin(record, CHUNK_EVENT);

	put_i64(chunk, time_ns);
	put_u16(chunk, (uint16_t)thread);
	put_string(chunk, kind);
	put_string(chunk, text);
	return chunk_end(record);
}

int record_content_at_most(struct record *record, int64_t time_ns, enum moment moment, const char *path, int err,
			   const char *content, size_t length, size_t most)
{
	bool cut = length > most;
	struct bytes *chunk = chunk_begin(record, CHUNK_FILE);

	put_i64(chunk, time_ns);
	put_u8(chunk, (uint8_t)moment);
	put_u8(chunk, cut);
	put_u16(chunk, (uint16_t)-err);
	put_string(chunk, path);
	put_u32(chunk, (uint32_t)(cut ? most : length));
	put_bytes(chunk, content, cut ? most : length);
	return chunk_end(record);
}

int record_file(struct record *record, int64_t time_ns, enum moment moment, const char *path)
{
	char *content = malloc(RECORD_FILE_MOST + 1);

	if (!content)
		return give_up(record, -ENOMEM);

	int length = text_read_file(path, content, RECORD_FILE_MOST + 1);
	int err = record_content_at_most(record, time_ns, moment, path, length < 0 ? length : 0, content,
					 length < 0 ? 0 : (size_t)length, RECORD_FILE_MOST);

	free(content);
	return err;
}

int record_content(struct record *record, int64_t time_ns, enum moment moment, const char *path, int err,
		   const char *content, size_t length)
{
	return record_content_at_most(record, time_ns, moment, path, err, content, length, CONTENT_MOST);
}

int record_begin(struct record *record, int64_t origin_ns)
{
	struct bytes *chunk = chunk_begin(record, CHUNK_BEGIN);
	struct utsname name;
	uint8_t id[16] = { 0 };

	memset(&name, 0, sizeof(name));
	uname(&name);
	/* Without a source of randomness two records can still be told apart by their times. */
	text_read_file("/dev/urandom", (char *)id, sizeof(id));
	put_u16(chunk, RECORD_MAJOR);
	put_u16(chunk, RECORD_MINOR);
	put_bytes(chunk, id, sizeof(id));
	put_i64(chunk, clock_wall_ns() + origin_ns - clock_now_ns());
	put_i64(chunk, origin_ns);
	put_string(chunk, AGENT_VERSION);
	put_string(chunk, name.machine);
	put_string(chunk, name.release);
	put_string(chunk, name.version);
	return chunk_end(record);
}
