/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "background/follow.h"

#include "background/background_folder.h"
#include "background/frames.h"
#include "background/link_cost.h"
#include "background/waiter.h"
#include "record/delivery.h"
#include "system/clock.h"
#include "system/text.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

/* Two looks a second: as often as the agent tells its progress. */
enum { LOOK_MS = 500 };

#define SILENT_NS (30 * NS_PER_SECOND)
#define BEAT_NS (5 * NS_PER_SECOND)

/* A host says something every 5 s. One that has said nothing for longer may be gone. */
enum { QUIET_S = 12 };

/* A file that the host gets piece by piece. */
struct source {
	char type;
	const char *name;
	bool wanted;
	int64_t at;
};

enum { LOG, RECORD, SOURCES };

struct following {
	const char *folder;
	struct background background;
	struct source sources[SOURCES];
	struct frames frames;
	int lock;
	bool done, told_end;
	bool elsewhere; /* it has left the measured CPUs, if others are allowed */
	bool streams; /* the host takes the record while it is measured, and what it has is freed */
	struct delivery delivery;
	struct link_cost cost;
	int64_t heard_ns, beat_ns;
	char why[256];
	char line[128]; /* what the host has sent of a line */
	size_t length;
};

static int64_t file_size(const char *folder, const char *name)
{
	char path[BACKGROUND_PATH];
	struct stat file;

	return background_path(path, folder, name) && stat(path, &file) == 0 ? (int64_t)file.st_size : -1;
}

/* How the run stands, and how long its files are; -1: there is none. */
static int send_standing(struct following *following, const char *words)
{
	char boot[BOOT_ID_ROOM], text[256];

	boot_id(boot);
	int length = snprintf(text, sizeof(text), "%s; boot %s; now %s; log %lld; record %lld", words, following->background.boot,
			      boot, (long long)file_size(following->folder, "log"),
			      (long long)file_size(following->folder, "run.rtrec"));

	if (following->streams)
		length += snprintf(text + length, sizeof(text) - (size_t)length, "; given %lld %lld",
				   (long long)following->delivery.record, (long long)following->delivery.log);
	following->beat_ns = clock_now_ns();
	return frame_send(&following->frames, 'S', 0, (const uint8_t *)text, (size_t)length);
}

/* One piece of a file. How many bytes, 0 at its end, or -errno. */
static int send_piece(struct following *following, const struct source *source, int64_t offset, size_t most)
{
	static uint8_t piece[FRAME_BYTES];
	char path[BACKGROUND_PATH];

	if (!background_path(path, following->folder, source->name))
		return -ENAMETOOLONG;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	ssize_t n = pread(fd, piece, most < frame_most(&following->frames) ? most : frame_most(&following->frames), offset);
	int err = n < 0 ? -errno : 0;

	close(fd);
	if (n > 0)
		err = frame_send(&following->frames, source->type, offset, piece, (size_t)n);
	return err ? err : (int)n;
}

/* What the host has of a file takes no room in RAM any more; the file keeps its length. */
static void free_begin(const char *folder, const char *name, int64_t bytes)
{
	char path[BACKGROUND_PATH];
	int64_t whole_pages = bytes - bytes % sysconf(_SC_PAGESIZE);
	int fd = background_path(path, folder, name) ? open(path, O_WRONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	/* The agent has tried at the start whether this kernel can do it. */
	if (whole_pages)
		(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)whole_pages);
	close(fd);
}

static int64_t larger_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The agent writes which they are when it begins to measure, which may be after the follower began. */
static void leave_measured_cpus(struct following *following)
{
	char path[BACKGROUND_PATH], measured[CPUS_TEXT];

	if (following->elsewhere || !background_path(path, following->folder, "measured") ||
	    text_read_line(path, measured, sizeof(measured)))
		return;
	link_leave_cpus(measured);
	/* Where it ran before anything was measured is nothing to doubt. */
	memset(&following->cost.cpus, 0, sizeof(following->cost.cpus));
	following->elsewhere = true;
}

/* No more than there is may be freed, whatever a host says. */
static int take_receipt(struct following *following, long long record, long long log)
{
	struct delivery *delivery = &following->delivery;
	const char *folder = following->folder;

	if (record < 0 || log < 0 || record > file_size(folder, "run.rtrec") || log > file_size(folder, "log"))
		return 0;
	following->streams = true;
	leave_measured_cpus(following);
	delivery->record = larger_of(delivery->record, record);
	delivery->log = larger_of(delivery->log, log);
	free_begin(folder, "run.rtrec", delivery->record);
	free_begin(folder, "log", delivery->log);
	link_cost_tell(&following->cost, following->frames.sent, delivery);
	return delivery_write(folder, delivery);
}

static struct source *source_of(struct following *following, char type)
{
	for (int i = 0; i < SOURCES; i++)
		if (following->sources[i].type == type)
			return &following->sources[i];
	return NULL;
}

static int send_again(struct following *following, const char *words)
{
	char type;
	long long offset, length;
	struct source *source;

	if (sscanf(words, "%c %lld %lld", &type, &offset, &length) != 3 || offset < 0 || !(source = source_of(following, type)))
		return 0;
	while (length > 0) {
		int n = send_piece(following, source, offset, (size_t)length);

		if (n <= 0)
			return n;
		offset += n;
		length -= n;
	}
	return 0;
}

static int obey(struct following *following, const char *line)
{
	long long offset, log;

	if (sscanf(line, "have %lld %lld", &offset, &log) == 2)
		return take_receipt(following, offset, log);
	/* A host that has less than another one before it is told so by S. */
	if (sscanf(line, "record %lld", &offset) == 1 && offset >= following->delivery.record) {
		following->sources[RECORD].wanted = true;
		following->sources[RECORD].at = offset;
		following->told_end = false;
	}
	if (!strcmp(line, "done"))
		following->done = true;
	if (!strncmp(line, "signal ", 7))
		return background_signal(following->folder, line + 7, following->why, sizeof(following->why));
	return !strncmp(line, "again ", 6) ? send_again(following, line + 6) : 0;
}

static int take_lines(struct following *following)
{
	char received[256];
	ssize_t n = read(STDIN_FILENO, received, sizeof(received));
	int err = 0;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	following->done = following->done || n == 0;
	(void)futimens(following->lock, NULL);
	for (ssize_t i = 0; i < n && !err; i++) {
		if (received[i] != '\n' && received[i] != '\r') {
			if (following->length < sizeof(following->line) - 1)
				following->line[following->length++] = received[i];
			continue;
		}
		following->line[following->length] = '\0';
		following->length = 0;
		err = obey(following, following->line);
	}
	/* Only now, because what is sent again may take longer on a slow line than a host may be silent. */
	following->heard_ns = clock_now_ns();
	return err;
}

/* Of each wanted file one piece. How many bytes went, or -errno. */
static int send_news(struct following *following)
{
	int sent = 0;

	for (int i = 0; i < SOURCES; i++) {
		struct source *source = &following->sources[i];
		int n = source->wanted ? send_piece(following, source, source->at, FRAME_BYTES) : 0;

		if (n < 0)
			return n;
		source->at += n;
		sent += n;
	}
	return sent;
}

/* The host has taken over from another process: the file that this one has locked has no name any more. */
static bool replaced(const struct following *following)
{
	struct stat file;

	return fstat(following->lock, &file) < 0 || file.st_nlink == 0;
}

static int step(struct following *following)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char words[40];

	link_cost_look(&following->cost);
	/* First how it stands, then the files: what a run wrote that has ended by then is sent before its end is told. */
	background_standing(following->folder, &following->background, words, sizeof(words));
	bool ended = strcmp(words, "running") != 0;
	int sent = send_news(following);
	int err = sent < 0 ? sent : 0;

	if (!err && !sent && ended && !following->told_end) {
		following->told_end = true;
		err = send_standing(following, words);
	}
	if (!err && clock_now_ns() - following->beat_ns > BEAT_NS)
		err = send_standing(following, ended && sent ? "sending" : words);
	if (!err && poll(&input, 1, sent ? 0 : LOOK_MS) > 0)
		err = take_lines(following);
	return err;
}

static bool may_be_gone(int lock)
{
	struct stat file;

	if (fstat(lock, &file) < 0)
		return true;
	int64_t quiet_s = (int64_t)time(NULL) - file.st_mtime;

	/* The board's clock may have been set meanwhile, also back. */
	return quiet_s > QUIET_S || quiet_s < -QUIET_S;
}

/* The follower of a host that was killed does not miss it at once, and has the lock until then. */
static int wait_for_lock(struct following *following)
{
	int64_t end_ns = clock_now_ns() + SILENT_NS + BEAT_NS;
	char words[40];
	int err = 0;

	while (!err && flock(following->lock, LOCK_EX | LOCK_NB) < 0) {
		if (!may_be_gone(following->lock) || clock_now_ns() > end_ns)
			return -EBUSY;
		if (clock_now_ns() - following->beat_ns > BEAT_NS) {
			background_standing(following->folder, &following->background, words, sizeof(words));
			err = send_standing(following, words);
		}
		poll(NULL, 0, LOOK_MS);
	}
	return err;
}

/* A run that is streamed may have had another follower before. */
static void begin_stream(struct following *following)
{
	struct delivery *delivery = &following->delivery;

	following->streams = delivery_read(following->folder, delivery) == 0;
	leave_measured_cpus(following);
	link_cost_open(&following->cost, delivery);
	following->sources[LOG].at = larger_of(following->sources[LOG].at, delivery->log);
}

static int lock_for(struct following *following, const char *host, char *why, size_t room)
{
	char path[BACKGROUND_PATH], other[80] = "";

	if (!background_path(path, following->folder, "follower"))
		return text_refuse(why, room, -ENAMETOOLONG, "%s is too long", following->folder);
	if (text_read_line(path, other, sizeof(other)) == 0 && !strcmp(other, host))
		unlink(path);
	following->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	/* The disk may be full, or the board may have made it read-only after an error. The record can be read all the same. */
	if (following->lock < 0)
		following->lock = open(following->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (following->lock < 0)
		return text_refuse(why, room, -errno, "%s cannot be read: %s", following->folder, strerror(errno));
	if (wait_for_lock(following) < 0)
		return text_refuse(why, room, -EBUSY, "%s follows this run", other[0] ? other : "another host");
	/* The name is for messages alone, so it does no harm if there is no room for it. */
	ssize_t written = ftruncate(following->lock, 0) < 0 ? -1 : write(following->lock, host, strlen(host));

	(void)written;
	return 0;
}

int follow(const char *folder, const char *host, int64_t log_from, bool as_text, char *why, size_t room)
{
	static struct following following;
	char words[40];

	following = (struct following){
		.folder = folder,
		.sources = { { 'L', "log", true, log_from }, { 'R', "run.rtrec", false, 0 } },
		.frames = { .fd = STDOUT_FILENO, .as_text = as_text },
		.heard_ns = clock_now_ns(),
	};
	int err = background_read(folder, &following.background);

	if (err)
		return background_no_run(folder, err, why, room);
	signal(SIGPIPE, SIG_IGN);
	err = lock_for(&following, host, why, room);
	if (err)
		return err;
	begin_stream(&following);
	background_standing(folder, &following.background, words, sizeof(words));
	err = send_standing(&following, words);
	while (!err && !following.done && !replaced(&following) && clock_now_ns() - following.heard_ns < SILENT_NS)
		err = step(&following);
	close(following.lock);
	/* A connection that broke is the usual end, and there is nobody who could be told. */
	return 0;
}
