/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What building a large program does to a system: as many jobs at a time as `make` was allowed, each a process that starts
 * a program, reads its source, takes memory bit by bit, computes, writes its output beside and renames it, and has it read
 * again by another process.
 */
#include "system/sys.h"

#include "loads/load.h"
#include "system/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { JOBS, MIB };
enum { MIB_PRESET = 16, SOURCE = 256 * 1024, NAME_BYTES = 32, ROUNDS = 16384 };

static const struct load_option options[] = {
	{ "jobs", "jobs at a time (default: one for each CPU)", 1, 1024, LOAD_PER_CPU },
	{ "mib", "memory of a job in MiB (default: 16; all at most a quarter of the available memory)", 1, 1024, 0 },
	{ NULL, NULL, 0, 0, 0 },
};

static int prepare(struct load_order *order)
{
	return load_share_memory(order, MIB, MIB_PRESET, order->values[JOBS]);
}

/* A source, an output and one not yet renamed. */
static int64_t space(const struct load_order *order)
{
	return order->values[JOBS] * 3 * SOURCE;
}

static int transfer(const char *name, int flags, char *data)
{
	int fd = open(name, flags | O_CLOEXEC, 0600);
	ssize_t n = fd < 0 ? -1 : flags & O_CREAT ? write(fd, data, SOURCE) : read(fd, data, SOURCE);

	close(fd);
	return n == SOURCE ? 0 : -EIO;
}

static int await(pid_t pid)
{
	int status = 0;

	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return pid < 0 ? pid : status ? -ECHILD : 0;
}

/* This program itself, because no other is sure to be there; it only tells its version. */
static int start_program(void)
{
	static char name[] = "rtproof-agent", command[] = "version";
	char *const arguments[] = { name, command, NULL };
	pid_t pid = load_spawn();

	if (pid == 0) {
		streams_close();
		execv("/proc/self/exe", arguments);
		_exit(errno);
	}
	return await(pid);
}

static const char *unsupported(const struct load_order *order)
{
	(void)order;
	return start_program() ? "this program can't be started again from /proc/self/exe" : NULL;
}

static int read_again(const char *name, char *data)
{
	pid_t pid = load_spawn();

	if (pid == 0)
		_exit(-transfer(name, O_RDONLY, data));
	return await(pid);
}

static int compute(const struct load_order *order, char *data)
{
	uint32_t x = LOAD_SEED;

	for (int64_t i = 0; i < order->values[MIB]; i++) {
		char *more = load_map(LOAD_MIB);

		if (!more)
			return -ENOMEM;
		memset(more, data[i % SOURCE], LOAD_MIB);
		for (int round = 0; round < ROUNDS; round++) {
			char *byte = &data[load_random(&x) % SOURCE];

			*byte = (char)(*byte ^ more[load_random(&x) % LOAD_MIB]);
		}
	}
	return 0;
}

static int do_job(const struct load_order *order, const char *source, const char *output)
{
	char unfinished[NAME_BYTES + 2], *data = load_map(SOURCE);
	int err = data ? start_program() : -ENOMEM;

	snprintf(unfinished, sizeof(unfinished), "%s~", output);
	if (!err)
		err = transfer(source, O_RDONLY, data);
	if (!err)
		err = compute(order, data);
	if (!err)
		err = transfer(unfinished, O_WRONLY | O_CREAT | O_TRUNC, data);
	if (!err)
		err = rename(unfinished, output) < 0 ? -errno : 0;
	return err ? err : read_again(output, data);
}

/* A job is one process of its own with all that it starts. */
static int work(const struct load_order *order, struct load_slot *slot)
{
	char source[NAME_BYTES], output[NAME_BYTES], *text = load_map(SOURCE);
	long number = (long)(slot - order->slots);

	snprintf(source, sizeof(source), "%ld.c", number);
	snprintf(output, sizeof(output), "%ld.o", number);
	int err = text ? transfer(source, O_WRONLY | O_CREAT, text) : -ENOMEM;

	for (; !err; slot->work++) {
		pid_t pid = load_spawn();

		if (pid == 0)
			_exit(-do_job(order, source, output));
		err = await(pid);
	}
	return err;
}

const struct load load_churn = {
	.name = "churn",
	.help = "processes that start, read, take memory, compute, write and end, as in building a program",
	.unit = "jobs",
	.options = options,
	.unsupported = unsupported,
	.prepare = prepare,
	.space = space,
	.work = work,
};
