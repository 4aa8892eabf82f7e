/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole runs inside this process, so that the sanitizers watch every thread of them: each method, threads that share CPUs,
 * loads, checkpoints, and an end asked for from outside. How late the threads were is not looked at here.
 */
#include "system/sys.h"

#include "options.h"
#include "run/run.h"

#include "check.h"
#include "decode.h"
#include "flushed.h"
#include "scratch.h"

#include <getopt.h>

enum { ARGUMENTS_MOST = 32 };

static int run_with(const char *options)
{
	static struct config config;
	char words[512], path[300], why[512] = "", name[] = "run", output[] = "-o";
	char *argv[ARGUMENTS_MOST] = { name, output, path }, *rest = NULL;
	int argc = 3;

	snprintf(path, sizeof(path), "%s", scratch_file());
	snprintf(words, sizeof(words), "--policy other --no-lock-memory --warmup 5ms %s", options);
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	optind = 0; /* getopt_long() starts anew */
	int err = parse_config(argc, argv, &config, why, sizeof(why));

	if (!err)
		err = run_measure(&config, why, sizeof(why));
	if (err)
		printf("%s: %s\n", options, why);
	return err;
}

/* The reason in END; obtained and missed of the first series. */
static enum end_reason read_end(uint64_t *obtained, uint64_t *missed)
{
	struct reader reader = read_whole(scratch_path);
	uint8_t *start = (uint8_t *)(uintptr_t)reader.at;
	enum end_reason reason = END_ERROR;
	struct chunk chunk;
	char text[256];
	bool ended = false;

	while (get_chunk(&reader, &chunk)) {
		if (chunk.type != CHUNK_END)
			continue;
		ended = true;
		get_i64(&chunk.payload);
		reason = (enum end_reason)get_number(&chunk.payload, 1);
		get_string(&chunk.payload, text, sizeof(text));
		CHECK(get_number(&chunk.payload, 2) > 0);
		get_number(&chunk.payload, 2);
		*obtained = get_number(&chunk.payload, 8);
		*missed = get_number(&chunk.payload, 8);
	}
	CHECK(ended);
	free(start);
	return reason;
}

static void every_method_runs(void)
{
	for (const struct method *const *method = probe_find("timer")->methods; *method; method++) {
		char options[128];
		uint64_t obtained = 0, missed = 0;

		if (method_unsupported(*method))
			continue;
		snprintf(options, sizeof(options), "--samples 50 --period 2ms --method %s", (*method)->name);
		CHECK(run_with(options) == 0);
		CHECK(read_end(&obtained, &missed) == END_AS_ASKED);
		CHECK(obtained + missed == 50);
		CHECK(obtained > 0);
	}
}

static void threads_loads_and_checkpoints_go_together(void)
{
	uint64_t obtained = 0, missed = 0;

	CHECK(run_with("--duration 500ms --threads 8 --checkpoint 100ms --load cpu:workers=1 --load sched:groups=1,pairs=2") ==
	      0);
	CHECK(read_end(&obtained, &missed) == END_AS_ASKED);
	CHECK(obtained + missed == 500);
}

/* From another process, as soon as there is a record: from then on signals are the agent's. */
static void a_signal_ends_it(void)
{
	uint64_t obtained = 0, missed = 0;
	pid_t parent = getpid(), pid;

	scratch_file();
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		while (access(scratch_path, F_OK) < 0)
			usleep(1000);
		kill(parent, SIGTERM);
		_exit(0);
	}
	CHECK(run_with("--duration 1h --period 100ms --threads 2") == 0);
	CHECK(read_end(&obtained, &missed) == END_INTERRUPTED);
}

static bool has_begun, was_asked, has_samples;

/* What a power cut at this moment would leave. */
static void look_at_what_is_flushed(void)
{
	struct reader reader = read_whole(scratch_path);
	uint8_t *start = (uint8_t *)(uintptr_t)reader.at;
	struct chunk chunk;

	while (get_chunk(&reader, &chunk)) {
		has_begun = has_begun || chunk.type == CHUNK_BEGIN;
		has_samples = has_samples || chunk.type == CHUNK_SAMPLES || chunk.type == CHUNK_END;
		if (chunk.type != CHUNK_FACT)
			continue;
		get_i64(&chunk.payload);
		get_number(&chunk.payload, 2);
		was_asked = was_asked || get_number(&chunk.payload, 1) == MOMENT_ASKED;
	}
	free(start);
}

/* Long before the first checkpoint. */
static void what_was_asked_is_flushed_at_once(void)
{
	uint64_t obtained = 0, missed = 0;

	n_flushed = 0;
	on_first_flush = look_at_what_is_flushed;
	CHECK(run_with("--duration 100ms --period 1ms --checkpoint 1h") == 0);
	CHECK(read_end(&obtained, &missed) == END_AS_ASKED && obtained > 0);
	CHECK(has_begun && was_asked && !has_samples);
	CHECK(n_flushed >= 3 && !strcmp(flushed[0], scratch_path) && !strcmp(flushed[1], scratch_folder));
	on_first_flush = NULL;
}

int main(void)
{
	sys_init();
	what_was_asked_is_flushed_at_once();
	every_method_runs();
	threads_loads_and_checkpoints_go_together();
	a_signal_ends_it();
	return EXIT_SUCCESS;
}
