/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "facts_command.h"

#include "collect/collect.h"
#include "facts/machine.h"
#include "facts/real_time.h"
#include "record/record.h"
#include "system/clock.h"
#include "system/processes.h"
#include "system/text.h"

#include <stdio.h>
#include <string.h>

enum { BETWEEN_MOST_S = 60, PID_MOST = 1 << 22 };

struct facts_request {
	const char *output;
	int64_t between_ns; /* from the first look at what is counted to the second */
	int64_t pid;        /* the process that the audit is about; 0: none */
	bool list;
};

static const char usage[] = "usage: rtproof-agent facts -o FILE [--pid PID] [--between TIME] | facts --list";

static int parse_one(struct facts_request *request, const char *name, const char *value)
{
	if (!strcmp(name, "-o"))
		request->output = value;
	else if (!strcmp(name, "--pid"))
		return text_number(value, 1, PID_MOST, &request->pid);
	else if (strcmp(name, "--between") != 0 || text_duration_ns(value, &request->between_ns) ||
		 request->between_ns > BETWEEN_MOST_S * NS_PER_SECOND)
		return -EINVAL;
	return 0;
}

/* What a host gives a program there, for runs or for who keeps them: this one ends soon anyway, and writes at once. */
static bool is_for_others(const char *name)
{
	return !strcmp(name, "--stop-on-eof") || !strcmp(name, "--progress") || !strcmp(name, "--stream") || !strcmp(name, "--forget");
}

static int parse(int argc, char **argv, struct facts_request *request, char *why, size_t room)
{
	request->list = argc == 2 && !strcmp(argv[1], "--list");
	for (int i = 1; i < argc && !request->list; i++) {
		if (is_for_others(argv[i])) {
			i += strcmp(argv[i], "--stop-on-eof") != 0;
			continue;
		}
		if (i + 1 == argc || parse_one(request, argv[i], argv[i + 1]))
			return text_refuse(why, room, -EINVAL, "%s %s makes no sense; %s", argv[i], i + 1 < argc ? argv[i + 1] : "", usage);
		i++;
	}
	if (!request->list && !*request->output)
		return text_refuse(why, room, -EINVAL, "-o FILE is missing; %s", usage);
	return 0;
}

/* All of it comes before the file is made, so that what ends this process leaves no half of one behind. */
struct looks {
	struct collection first, second;
	int64_t first_ns, second_ns; /* when they were done */
	struct system_part parts[SYSTEM_PARTS];
	struct bytes rt_threads;
};

static void write_system(const struct looks *looks, struct record *record)
{
	for (int i = 0; i < SYSTEM_PARTS; i++) {
		const struct system_part *part = &looks->parts[i];

		record_content(record, 0, MOMENT_START, part->path, part->err, (const char *)part->content.data, part->content.length);
	}
	record_content(record, 0, MOMENT_START, "rt-threads", 0, (const char *)looks->rt_threads.data, looks->rt_threads.length);
}

static void write_end(struct record *record, int64_t time_ns)
{
	struct bytes *chunk = chunk_begin(record, CHUNK_END);

	put_i64(chunk, time_ns);
	put_u8(chunk, END_AS_ASKED);
	put_string(chunk, "");
	put_u16(chunk, 0);
	chunk_end(record);
}

static void wait_ns(int64_t ns)
{
	const struct timespec length = { ns / NS_PER_SECOND, (long)(ns % NS_PER_SECOND) };

	nanosleep(&length, NULL);
}

static void look_once(struct looks *looks)
{
	struct rt_threads seen = { .next_ns = 0 };

	system_collect(looks->parts);
	rt_threads_collect(&seen, true, &looks->rt_threads);
	rt_threads_free(&seen);
}

static void free_looks(struct looks *looks)
{
	collect_free(&looks->first);
	collect_free(&looks->second);
	system_free(looks->parts);
	bytes_free(&looks->rt_threads);
}

static int look(const struct facts_request *request, struct looks *looks, int64_t begun_ns)
{
	const int pid = (int)request->pid;
	int err = collect_system(&looks->first, &collect_for_facts, MOMENT_START, pid);

	looks->first_ns = clock_now_ns() - begun_ns;
	if (err)
		return err;
	look_once(looks);
	wait_ns(request->between_ns);
	err = collect_system(&looks->second, &collect_for_facts, MOMENT_END, pid);
	looks->second_ns = clock_now_ns() - begun_ns;
	return err;
}

/* What would end this process waits until a file is whole. Into a pipe, which nobody may read, it writes for as long as it is let. */
static void hold_signals(sigset_t *before)
{
	sigset_t ending;

	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	sigprocmask(SIG_BLOCK, &ending, before);
}

static int write_facts(const struct facts_request *request, struct looks *looks, int64_t begun_ns)
{
	struct record record;
	sigset_t before;

	hold_signals(&before);
	int err = record_open(&record, request->output);

	if (err || !record.seekable)
		sigprocmask(SIG_SETMASK, &before, NULL);
	if (err)
		return err;
	record_begin(&record, begun_ns);
	record_fact(&record, 0, WHOLE_RUN, MOMENT_ASKED, "collected", "facts");
	record_fact(&record, 0, WHOLE_RUN, MOMENT_ASKED, "agent_pid", "%d", (int)getpid());
	if (request->pid)
		record_fact(&record, 0, WHOLE_RUN, MOMENT_ASKED, "pid", "%lld", (long long)request->pid);
	collect_write(&looks->first, &record, looks->first_ns, MOMENT_START);
	write_system(looks, &record);
	collect_write(&looks->second, &record, looks->second_ns, MOMENT_END);
	write_end(&record, clock_now_ns() - begun_ns);
	bool made = record.seekable;

	err = record_close(&record);
	if (err && made)
		unlink(request->output);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

static int refuse_output(const char *output, int err, char *why, size_t room)
{
	if (err == -EEXIST)
		return text_refuse(why, room, err, "'%s' exists already; facts are never overwritten", output);
	return text_refuse(why, room, err, "'%s' can't be written: %s", output, strerror(-err));
}

static int collect_and_write(const struct facts_request *request, char *why, size_t room)
{
	struct looks looks;
	int64_t begun_ns = clock_now_ns();

	memset(&looks, 0, sizeof(looks));
	int err = look(request, &looks, begun_ns);

	if (err)
		text_refuse(why, room, err, "the system could not be read: %s", strerror(-err));
	else
		err = write_facts(request, &looks, begun_ns);
	if (err && !*why)
		refuse_output(request->output, err, why, room);
	free_looks(&looks);
	return err;
}

/* A file system of processes that is not mounted, or hides those of others, has no folder of a process that runs. */
static int find_process(pid_t pid, char *why, size_t room)
{
	struct taskstat stat;
	char path[32];

	if (!pid)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!taskstat_read(path, &stat))
		return stat.of_kernel ? text_refuse(why, room, -EINVAL, "process %d is a thread of the kernel and no application", (int)pid) : 0;
	if (kill(pid, 0) && errno == ESRCH)
		return text_refuse(why, room, -ESRCH, "there is no process %d", (int)pid);
	return text_refuse(why, room, -EACCES, "process %d runs, but its folder in /proc cannot be seen; is /proc mounted, and without hidepid?",
			   (int)pid);
}

static bool is_there(const char *output)
{
	return strcmp(output, "-") != 0 && access(output, F_OK) == 0;
}

int facts_main(int argc, char **argv, char *why, size_t room)
{
	struct facts_request request = { .output = "", .between_ns = NS_PER_SECOND };
	*why = '\0';
	if (parse(argc, argv, &request, why, room))
		return -EINVAL;
	if (request.list) {
		collect_list();
		return ferror(stdout) ? text_refuse(why, room, -EIO, "the list cannot be written") : 0;
	}
	int err = find_process((pid_t)request.pid, why, room);

	if (!err && is_there(request.output))
		err = refuse_output(request.output, -EEXIST, why, room);
	if (err)
		return err;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return collect_and_write(&request, why, room);
}
