/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "run/preflight.h"

#include "facts/real_time.h"
#include "measure/capture.h"
#include "measure/config.h"
#include "run/streaming.h"
#include "system/clock.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

/*
 * What a record needs. Checkpoint: of one thread, seen to be 500 to 1,000. Exceeded, above: an entry of such a chunk and its
 * share of the chunk. Fixed: facts and files at both ends, the reserve.
 */
static const double sample_bytes = 2.1, checkpoint_bytes = 1500, exceeded_bytes = 14, above_bytes = 6, fixed_bytes = 512 * 1024;

/* Whether the policy can be had at all, tried on the calling thread and taken back. */
static int try_policy(const struct config *config)
{
	if (config->policy == POLICY_OTHER)
		return 0;
	int err = config->policy == POLICY_DEADLINE ? policy_set_deadline(config->period_ns) :
						      sys_set_policy(0, (int)config->policy, config->priority);

	sys_set_policy(0, POLICY_OTHER, 0);
	return err;
}

static int check_privilege(struct config *config, char *why, size_t room)
{
	int err = try_policy(config);
	/* A deadline is promised on all CPUs, so the kernel asks for leave to use all of them. */
	const char *needs = config->policy == POLICY_DEADLINE ?
				    "root, the use of all CPUs, and CPU time that nobody has reserved" :
				    "root, CAP_SYS_NICE or an RTPRIO limit, and a control group with a budget for real-time threads";
	char priority[32] = "", budget[512];

	if (!err)
		return 0;
	rt_budget_explain(budget, sizeof(budget));
	snprintf(config->refused, sizeof(config->refused), "%s%s%s", strerror(-err), *budget ? "; " : "", budget);
	if (config->allow_unprivileged) { /* the record says what was asked and what was had */
		config->policy = POLICY_OTHER;
		config->priority = 0;
		return 0;
	}
	if (config->priority)
		snprintf(priority, sizeof(priority), " at priority %d", config->priority);
	if (*budget)
		snprintf(why, room, "policy %s%s was refused (%s): %s; write a budget there, or start from a group that has one",
			 policy_name((int)config->policy), priority, strerror(-err), budget);
	else
		snprintf(why, room, "policy %s%s was refused (%s): it needs %s; --allow-unprivileged measures without it",
			 policy_name((int)config->policy), priority, strerror(-err), needs);
	return err;
}

static double least_of(double a, double b)
{
	return a < b ? a : b;
}

/* With at least two digits, in a buffer of 32 bytes. */
static const char *size_text(char *text, double bytes)
{
	if (bytes < 1e7)
		snprintf(text, 32, "%.0f kB", bytes / 1e3);
	else if (bytes < 1e10)
		snprintf(text, 32, "%.0f MB", bytes / 1e6);
	else
		snprintf(text, 32, "%.0f GB", bytes / 1e9);
	return text;
}

/* What is above the limits, should every activation be above each: lists end, the counts of each second go on. */
static double above_space(const struct config *config, double samples, double length_ns)
{
	double seconds = least_of(samples, length_ns / NS_PER_SECOND + 1);

	return exceeded_bytes * least_of(samples, (double)ABOVE_LIST_MOST * config->n_limits) +
	       above_bytes * seconds * config->n_limits;
}

/* What the record will need at most, against what the file system has. */
static int check_space(const struct config *config, const struct trace_plan *trace, char *why, size_t room)
{
	char copy[4096];
	struct statvfs status;

	snprintf(copy, sizeof(copy), "%s", config->output);
	if (!strcmp(config->output, "-") || statvfs(dirname(copy), &status) < 0)
		return 0; /* opening it will tell */
	double length_ns = config_length_ns(config), samples = length_ns / (double)config->period_ns;
	double of_thread = CAPTURE_RESERVE + (config->keep_samples ? sample_bytes * samples : 0) +
			   checkpoint_bytes * (1 + length_ns / (double)config->checkpoint_ns);
	double of_last = above_space(config, samples, length_ns); /* of a thread's fields */
	double needed = fixed_bytes + (of_thread * config->fields + of_last) * config->threads + trace_space(trace);
	double there = (double)status.f_bavail * (double)status.f_frsize, limit = (double)record_size_limit();
	char place[300], size[32], room_there[32];

	if (needed <= there && needed <= limit)
		return 0;
	if (limit < there)
		snprintf(place, sizeof(place), "a file may have %s (ulimit -f)", size_text(room_there, limit));
	else
		snprintf(place, sizeof(place), "%s are free for '%.200s'", size_text(room_there, there), config->output);
	snprintf(why, room, "the record needs up to %s, and %s; measure for less time, with a longer period, or with %s",
		 size_text(size, needed), place,
		 trace_space(trace) > needed / 2 ? "a smaller buffer_kib of --trace" :
		 config->keep_samples	       ? "--record summary" :
		 config->n_limits	       ? "fewer limits" :
						 "fewer threads");
	return -ENOSPC;
}

/* A file that is there already is found before loads and threads are started. */
static int check_output(const struct config *config, char *why, size_t room)
{
	if (!strcmp(config->output, "-") || access(config->output, F_OK) < 0)
		return 0;
	snprintf(why, room, "'%s' exists already; a record is never overwritten", config->output);
	return -EEXIST;
}

int preflight(struct config *config, struct trace_plan *trace, char *why, size_t room)
{
	int err = check_output(config, why, room);

	if (!err)
		err = check_privilege(config, why, room);
	memcpy(trace->marks, config->marks, sizeof(trace->marks));
	trace->ends_with_sleep = config->probe->ends_with_sleep;
	if (!err)
		err = trace_plan(trace, config->trace, config->trace_blocks_ns, why, room);
	trace->length_ns = (int64_t)config_length_ns(config);
	if (err)
		return err;
	return config->stream_bytes ? streaming_check(config, why, room) : check_space(config, trace, why, room);
}
