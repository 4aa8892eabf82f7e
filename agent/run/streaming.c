/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "run/streaming.h"

#include "record/delivery.h"
#include "system/clock.h"
#include "system/text.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

enum {
	TMPFS = 0x01021994,       /* its f_type, of statfs(2) */
	LOG_MOST = 64 * 1024,     /* bytes of lines that wait for the host; progress that nobody sees is not worth more */
	FACTS_BYTES = 512 * 1024, /* what a record begins with takes at most so much */
};

static bool folder_of(const char *file, char folder[512])
{
	char copy[512];

	if (snprintf(copy, sizeof(copy), "%s", file) >= (int)sizeof(copy))
		return false;
	snprintf(folder, 512, "%s", dirname(copy));
	return true;
}

/* Bytes that programs can have without swapping; kernels before 3.14 only tell what is free. -1: not known. */
static int64_t free_memory(void)
{
	static char text[4096];
	int length = text_read_file("/proc/meminfo", text, sizeof(text) - 1);
	long long kib;

	if (length <= 0)
		return -1;
	text[length] = '\0';
	const char *found = strstr(text, "MemAvailable:");

	if (!found)
		found = strstr(text, "MemFree:");
	return found && sscanf(found, "%*s %lld", &kib) == 1 ? kib * 1024 : -1;
}

/* On a file of its own in the same folder. */
static int try_freeing(const char *folder)
{
	char path[600];
	int err = 0;

	snprintf(path, sizeof(path), "%s/try", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, 8192) < 0 || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0)
		err = -errno;
	close(fd);
	unlink(path);
	return err;
}

/* The kernel may write what is in a tmpfs to a swap device, which may be the flash. One of compressed RAM (zram) is none. */
static void warn_of_swap(void)
{
	static char text[4096];
	int length = text_read_file("/proc/swaps", text, sizeof(text) - 1);

	if (length <= 0)
		return;
	text[length] = '\0';
	for (char *line = strchr(text, '\n'); line && line[1]; line = strchr(line, '\n')) {
		line++;
		if (strncmp(line, "/dev/zram", 9) != 0) {
			fprintf(stderr, "rtproof-agent: this board may swap what is in RAM to %.*s; swapoff prevents it\n",
				(int)strcspn(line, " \t\n"), line);
			return;
		}
	}
}

static int64_t reserve_of(const struct config *config)
{
	return RECORD_RESERVE + (int64_t)config->threads * config->fields * CAPTURE_RESERVE;
}

static int check_room(const struct config *config, const struct statfs *status, const char *folder, char *why, size_t room)
{
	double mb = (double)config->stream_bytes / 1e6, least = (double)(reserve_of(config) + FACTS_BYTES) / 1e6;
	double there = (double)status->f_bavail * (double)status->f_bsize / 1e6, memory = (double)free_memory() / 1e6;

	/* A tmpfs that was mounted without a limit tells 0 blocks. */
	if (status->f_blocks && there < mb)
		return text_refuse(why, room, -ENOSPC, "the buffer of %.1f MB does not fit: %.1f MB are free in %s", mb, there, folder);
	if (memory >= 0 && memory < mb)
		return text_refuse(why, room, -ENOMEM, "the buffer of %.1f MB does not fit: %.1f MB of RAM are free", mb, memory);
	if (mb < least)
		return text_refuse(why, room, -EINVAL, "a buffer of %.1f MB is too small for this run; it needs %.1f MB", mb, least);
	return 0;
}

int streaming_check(const struct config *config, char *why, size_t room)
{
	char folder[512];
	struct statfs status;

	if (config->trace)
		return text_refuse(why, room, -EINVAL, "a run that is streamed keeps no trace: its buffer has no room for one");
	if (!strcmp(config->output, "-") || !folder_of(config->output, folder) || statfs(folder, &status) < 0)
		return text_refuse(why, room, -EINVAL, "'%s' is no file of a run that can be streamed", config->output);
	if (status.f_type != TMPFS)
		return text_refuse(why, room, -EINVAL, "%s is not in RAM (tmpfs), and a run that is streamed writes nowhere else", folder);
	int err = try_freeing(folder);

	if (err)
		return text_refuse(why, room, err,
				   "this kernel cannot free the begin of a file in %s (%s), as a run that is streamed needs; Linux 3.5 can",
				   folder, strerror(-err));
	warn_of_swap();
	return check_room(config, &status, folder, why, room);
}

void streaming_begin(struct streaming *streaming, const struct run *run)
{
	struct cpus measured;
	char path[600], list[CPUS_TEXT];

	memset(streaming, 0, sizeof(*streaming));
	streaming->on = run->config->stream_bytes && folder_of(run->config->output, streaming->folder);
	if (!streaming->on)
		return;
	memset(&measured, 0, sizeof(measured));
	for (int i = 0; i < run->config->threads; i++)
		if (run->workers[i].cpu >= 0)
			cpus_add(&measured, run->workers[i].cpu);
	cpus_format(&measured, list, sizeof(list));
	snprintf(path, sizeof(path), "%s/measured", streaming->folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	/* Without it the follower stays where the kernel puts it, and the record tells where that was. */
	if (write(fd, list, strlen(list)) < 0)
		unlink(path);
	close(fd);
}

static void tell(struct run *run, const char *kind, const char *text)
{
	record_event(&run->record, run_time_ns(run), WHOLE_RUN, kind, text);
}

static void take_delivery(struct streaming *streaming, struct run *run)
{
	struct record *record = &run->record;
	struct delivery delivery;

	/* What is written whole, by a process of ours, and still says something else, is not believed. */
	if (delivery_read(streaming->folder, &delivery) || delivery.record > record->end)
		return;
	streaming->log_given = delivery.log;
	if (delivery.record <= record->delivered)
		return;
	record->delivered = delivery.record;
	streaming->heard_ns = run_time_ns(run);
	if (streaming->behind && !streaming->again_ns)
		streaming->again_ns = streaming->heard_ns;
}

void streaming_look(struct streaming *streaming, struct run *run)
{
	char text[80];

	if (!streaming->on)
		return;
	int64_t before_ns = streaming->heard_ns;

	take_delivery(streaming, run);
	if (run->record.behind == streaming->behind)
		return;
	streaming->behind = run->record.behind;
	snprintf(text, sizeof(text), "heard_ns=%lld", (long long)(streaming->behind ? before_ns : streaming->again_ns));
	streaming->again_ns = 0;
	tell(run, streaming->behind ? "link_behind" : "link_caught_up", text);
}

bool streaming_log_is_full(const struct streaming *streaming)
{
	struct stat log;

	return streaming->on && fstat(STDERR_FILENO, &log) == 0 && S_ISREG(log.st_mode) &&
	       log.st_size - streaming->log_given > LOG_MOST;
}

void streaming_end(struct streaming *streaming, struct run *run)
{
	struct delivery delivery;
	uint64_t dropped = 0;

	if (!streaming->on)
		return;
	for (int i = 0; i < run->config->threads * run->config->fields; i++)
		dropped += run->captures[i].unkept;
	run_fact_number(run, WHOLE_RUN, MOMENT_END, "samples_dropped", (int64_t)dropped);
	int err = delivery_read(streaming->folder, &delivery);

	if (err) {
		run_fact(run, WHOLE_RUN, MOMENT_END, "link_bytes", "unavailable: %s",
			 err == -ENOENT ? "no host had anything yet" : strerror(-err));
		return;
	}
	run_fact_number(run, WHOLE_RUN, MOMENT_END, "link_bytes", delivery.sent);
	run_fact_number(run, WHOLE_RUN, MOMENT_END, "link_wakeups", delivery.wakeups);
	run_fact_number(run, WHOLE_RUN, MOMENT_END, "link_cpu_ns", delivery.cpu_ns);
	run_fact(run, WHOLE_RUN, MOMENT_END, "link_cpus", "%s", delivery.cpus);
	run_fact(run, WHOLE_RUN, MOMENT_END, "link_device", "%s",
		 strcmp(delivery.device, "-") != 0 ? delivery.device : "unavailable: the link is not known to be a network device");
}
