/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "loads/common/program.h"

#include "loads/common/group.h"
#include "system/processes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { PROCESSES_PRESET = 1000, PROCESSES_MOST = 100000, MIB_MOST = 1 << 24, REST_MOST = 86400 };

static const char *const counts[] = {
	[COUNT_RUNS] = "runs", [COUNT_CPU_MS] = "cpu_ms", [COUNT_LINES] = "lines", [COUNT_BYTES] = "bytes",
};

static const struct load_option options[] = {
	{ "again", "1: start it again when it ended well (default: 0, its end ends the run)", 0, 1, 0 },
	{ "count", "0: runs that ended well, 1: CPU milliseconds, 2: lines or 3: bytes of output (default: 1)", 0, 3, COUNT_CPU_MS },
	{ "memory_mib", "for each process and for all (default: a quarter of the available memory)", 1, MIB_MOST, 0 },
	{ "processes", "at most (default: 1000)", 1, PROCESSES_MOST, PROCESSES_PRESET },
	{ "rest", "seconds that it may go without counting (default: 2)", 1, REST_MOST, 2 },
	{ "space_mib", "for files in a working directory of its own (default: 0)", 0, MIB_MOST, 0 },
	{ "needs", "another program that it needs", 1, 200, LOAD_TEXT },
	{ NULL, NULL, 0, 0, 0 },
};

static int64_t space(const struct load_order *order)
{
	return order->values[PROGRAM_SPACE] * LOAD_MIB;
}

static uint32_t slots(const struct load_order *order)
{
	(void)order;
	return 1;
}

static int prepare(struct load_order *order)
{
	order->rest_ns = order->values[PROGRAM_REST] * NS_PER_SECOND;
	return order->values[PROGRAM_MEMORY] ? 0 : load_share_memory(order, PROGRAM_MEMORY, MIB_MOST, 1);
}

static const char *unsupported(const struct load_order *order)
{
	static char why[300];
	const char *needed = order->texts[PROGRAM_NEEDS];

	if (!needed || program_is_there(needed))
		needed = order->words[0];
	if (program_is_there(needed))
		return NULL;
	snprintf(why, sizeof(why), "there is no program '%.200s'", needed);
	return why;
}

static void limit(int what, rlim_t most)
{
	struct rlimit limits = { most, most };

	setrlimit(what, &limits);
}

/* Becomes the program. */
static int run(struct load_order *order)
{
	char folder[4096];

	if (order->values[PROGRAM_SPACE] && getcwd(folder, sizeof(folder)))
		setenv("TMPDIR", folder, 1);
	limit(RLIMIT_CORE, 0);
	if (!order->group)
		limit(RLIMIT_AS, (rlim_t)order->values[PROGRAM_MEMORY] * LOAD_MIB);
	else if (group_join(order->group) < 0)
		return -errno;
	execvp(order->words[0], order->words);
	snprintf(order->why, LOAD_WHY, "'%.80s' can't be started: %s", order->words[0], strerror(errno));
	return -errno;
}

static const char *unit_of(const struct load_order *order)
{
	return order->values[PROGRAM_COUNT] == COUNT_CPU_MS ? "CPU ms" : counts[order->values[PROGRAM_COUNT]];
}

const struct load load_program = {
	.name = "program",
	.help = "a program of the system's",
	.unit_of = unit_of,
	.options = options,
	.unsupported = unsupported,
	.slots = slots,
	.prepare = prepare,
	.space = space,
	.run = run,
};

/* Cuts the next word off, in its place; NULL: there is none. A quote that is not closed sets *open. */
static char *next_word(char **rest, bool *open)
{
	char *from = *rest + strspn(*rest, " \t\n"), *to = from, *word = from, quote = '\0';

	if (!*from)
		return NULL;
	for (; *from && (quote || !strchr(" \t\n", *from)); from++) {
		if (*from == quote)
			quote = '\0';
		else if (!quote && (*from == '\'' || *from == '"'))
			quote = *from;
		else if (*from == '\\' && quote != '\'' && from[1])
			*to++ = *++from;
		else
			*to++ = *from;
	}
	*rest = from + (*from != '\0');
	*to = '\0';
	*open = quote;
	return word;
}

static int parse_command(char *command, struct running_load *running, char *why, size_t room)
{
	bool open = false;
	int n = 0;

	running->order.words = running->words;
	while (n < LOAD_WORDS - 1 && (running->words[n] = next_word(&command, &open)))
		n++;
	if (n && n < LOAD_WORDS - 1 && !open)
		return 0;
	snprintf(why, room, open ? "a quote is not closed in the command of program '%s'" :
			     n  ? "the command of program '%s' has too many words" :
				  "program '%s' needs a command: NAME[:key=value,...] COMMAND",
		 running->name);
	return -EINVAL;
}

int program_parse(const char *text, struct running_load *running, char *why, size_t room)
{
	int err = load_keep_text(text, running, why, room);
	char *command = running->given + strcspn(running->given, " \t\n");

	if (err)
		return err;
	if (*command)
		*command++ = '\0';
	running->load = &load_program;
	err = load_parse_options(running, why, room);
	return err ? err : parse_command(command, running, why, room);
}
