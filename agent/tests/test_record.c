/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "record/record.h"

#include "check.h"
#include "decode.h"
#include "flushed.h"
#include "scratch.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct record record;

/* Chunks of a file that must be whole and in sequence; answers how many. */
static uint32_t count_chunks(void)
{
	struct reader reader = read_whole(scratch_path);
	const uint8_t *start = reader.at;
	struct chunk chunk;
	uint32_t n = 0;

	while (get_chunk(&reader, &chunk))
		CHECK(chunk.sequence == n++);
	free((void *)(uintptr_t)start);
	return n;
}

static void a_file_that_is_there_is_not_touched(void)
{
	CHECK(record_open(&record, scratch_file()) == 0);
	CHECK(record_event(&record, 0, 0, "first", "") == 0);
	CHECK(record_close(&record) == 0);
	CHECK(record_open(&record, scratch_path) == -EEXIST);
	CHECK(count_chunks() == 1);
	CHECK(record_open(&record, "/nowhere/at/all") == -ENOENT);
}

static int64_t file_size(void)
{
	struct stat status;

	CHECK(stat(scratch_path, &status) == 0);
	return status.st_size;
}

static void room_kept_for_the_end_is_given_back(void)
{
	struct stat status;

	CHECK(record_open(&record, scratch_file()) == 0);
	CHECK(record_event(&record, 0, 0, "some", "thing") == 0);
	CHECK(file_size() == record.end);
	CHECK(!record.reserving || record.reserved_to >= record.end + 256 * 1024);
	CHECK(record_flush(&record) == 0);
	CHECK(record_close(&record) == 0);
	CHECK(stat(scratch_path, &status) == 0);
	CHECK(status.st_size == record.end && status.st_blocks * 512 < 64 * 1024);
}

/* A power cut after a flush must leave the file under its name, not only its content. */
static void the_first_flush_is_also_of_the_name(void)
{
	CHECK(record_open(&record, scratch_file()) == 0);
	n_flushed = 0;
	CHECK(record_event(&record, 0, 0, "some", "thing") == 0 && n_flushed == 0);
	CHECK(record_flush(&record) == 0 && n_flushed == 2);
	CHECK(!strcmp(flushed[0], scratch_path) && !strcmp(flushed[1], scratch_folder));
	CHECK(record_flush(&record) == 0 && n_flushed == 3 && !strcmp(flushed[2], scratch_path));
	CHECK(record_close(&record) == 0 && n_flushed == 4 && !strcmp(flushed[3], scratch_path));
}

/* Reads the one FILE chunk of the record; the content may not be asked for. */
static void expect_file(const char *path, bool cut, int err, const char *content, uint32_t length)
{
	char text[300];
	struct chunk chunk;

	CHECK(record_open(&record, scratch_file()) == 0);
	CHECK(record_file(&record, 7, MOMENT_END, path) == 0);
	CHECK(record_close(&record) == 0);
	struct reader reader = read_whole(scratch_path);
	const uint8_t *start = reader.at;

	CHECK(get_chunk(&reader, &chunk) && chunk.type == CHUNK_FILE);
	CHECK(get_i64(&chunk.payload) == 7 && get_number(&chunk.payload, 1) == MOMENT_END);
	CHECK(get_number(&chunk.payload, 1) == cut && get_number(&chunk.payload, 2) == (uint64_t)err);
	get_string(&chunk.payload, text, sizeof(text));
	CHECK(!strcmp(text, path) && get_number(&chunk.payload, 4) == length);
	CHECK(chunk.payload.end - chunk.payload.at == (ptrdiff_t)length);
	CHECK(memcmp(chunk.payload.at, content, length) == 0);
	free((void *)(uintptr_t)start);
}

static void files_are_kept_as_they_are_up_to_64_kib(void)
{
	static char content[64 * 1024 + 1];
	char path[] = "/tmp/rtproof-file-XXXXXX";
	int fd = mkstemp(path);

	memset(content, 'c', sizeof(content));
	CHECK(fd >= 0);
	expect_file(path, false, 0, "", 0);
	CHECK(write(fd, content, 64 * 1024) == 64 * 1024);
	expect_file(path, false, 0, content, 64 * 1024);
	CHECK(write(fd, content, 1) == 1);
	expect_file(path, true, 0, content, 64 * 1024);
	CHECK(close(fd) == 0 && unlink(path) == 0);
	expect_file(path, false, ENOENT, "", 0);
}

/* Writes events of some 10 kB until one fails; answers how many did not. */
static uint32_t write_until_full(int *err)
{
	static char text[10000];
	uint32_t n = 0;

	memset(text, 'x', sizeof(text) - 1);
	do
		*err = record_event(&record, n, 0, "filler", text);
	while (!*err && ++n < 1000);
	return n;
}

/* A limit on the size of files does what a full disk does, without a disk. */
static void a_full_disk_leaves_whole_chunks(void)
{
	struct rlimit limit, small;
	int err = 0;

	CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	small = limit;
	small.rlim_cur = 600000;
	CHECK(record_open(&record, scratch_file()) == 0);
	CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
	uint32_t n = write_until_full(&err);

	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	if (!err)
		SKIP("limits on the size of files are not obeyed here");
	CHECK(err == -EFBIG && record.error == -EFBIG && record.no_space);
	CHECK(n >= 58 && n <= 60);
	CHECK(file_size() == record.end);

	/* There is room again, but a record that has failed stays as it is. */
	CHECK(record_event(&record, 0, 0, "late", "") == -EFBIG);
	CHECK(record_flush(&record) == -EFBIG);
	CHECK(record_close(&record) == -EFBIG);
	CHECK(count_chunks() == n);
}

/* The reserve of the file system is of no use against such a limit, so the room for the end is kept below it. */
static void a_limit_on_the_size_of_files_leaves_room_for_the_end(int64_t more)
{
	static char text[10000];
	const rlim_t most = 600000;
	struct rlimit limit, small;

	memset(text, 'x', sizeof(text) - 1);
	CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0 && record_open(&record, scratch_file()) == 0);
	record.reserve += more;
	small = limit;
	small.rlim_cur = most;
	CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0 && record_size_limit() == (int64_t)most);
	for (int i = 0; i < 100 && !record.no_space; i++)
		CHECK(record_event(&record, i, 0, "filler", text) == 0);
	CHECK(record.no_space && record.limited && !record.error);
	int64_t left = (int64_t)most - record.end, kept = RECORD_RESERVE + more;

	CHECK(left < kept && left > kept - 11000);
	for (int64_t written = 0; written < kept - 22000; written += 10100)
		CHECK(record_event(&record, 0, 0, "end", text) == 0);
	CHECK(record_close(&record) == 0);
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* Opens a record on standard output while that is fd. */
static void open_on(int fd)
{
	CHECK(fflush(stdout) == 0);
	int saved = dup(STDOUT_FILENO);

	CHECK(saved >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
	CHECK(record_open(&record, "-") == 0);
	CHECK(dup2(saved, STDOUT_FILENO) >= 0 && close(saved) == 0);
}

static void standard_output_may_be_full(void)
{
	int fd = open("/dev/full", O_WRONLY);

	if (fd < 0)
		return;
	open_on(fd);
	CHECK(record_event(&record, 0, 0, "some", "thing") == -ENOSPC);
	CHECK(record.no_space && record.error == -ENOSPC);
	CHECK(record_close(&record) == -ENOSPC && close(fd) == 0);
}

static void standard_output_may_be_a_pipe(void)
{
	int ends[2];
	uint8_t data[256];

	CHECK(pipe(ends) == 0);
	open_on(ends[1]);
	CHECK(record_event(&record, 5, WHOLE_RUN, "some", "thing") == 0);
	CHECK(record_flush(&record) == 0);
	ssize_t n = read(ends[0], data, sizeof(data));
	struct reader reader = { data, data + n };
	struct chunk chunk;

	CHECK(n > 0 && get_chunk(&reader, &chunk) && chunk.type == CHUNK_EVENT && reader.at == reader.end);
	CHECK(close(ends[0]) == 0);
	CHECK(record_event(&record, 6, WHOLE_RUN, "some", "thing") == -EPIPE);
	CHECK(!record.no_space);
	CHECK(record_close(&record) == -EPIPE && close(ends[1]) == 0);
}

int main(void)
{
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	a_file_that_is_there_is_not_touched();
	room_kept_for_the_end_is_given_back();
	the_first_flush_is_also_of_the_name();
	files_are_kept_as_they_are_up_to_64_kib();
	standard_output_may_be_full();
	standard_output_may_be_a_pipe();
	a_limit_on_the_size_of_files_leaves_room_for_the_end(0);
	a_limit_on_the_size_of_files_leaves_room_for_the_end(100000);
	a_full_disk_leaves_whole_chunks();
	return EXIT_SUCCESS;
}
