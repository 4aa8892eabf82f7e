/* SPDX-License-Identifier: Apache-2.0 */
/* What the user asked for, in one place. options.c fills it in. */
#ifndef RTPROOF_CONFIG_H
#define RTPROOF_CONFIG_H

#include "loads/common/running.h"
#include "measure/above_levels.h"
#include "measure/worker.h"
#include "probes/probe.h"
#include "system/cpus.h"

enum { CONFIG_LOADS = 16, CONFIG_THREADS_MOST = 4096, CONFIG_SETTINGS = 1024 };

struct config {
	const char *output; /* "-": standard output */
	const struct probe *probe;
	const char *method_asked; /* NULL: the probe's first */
	const struct method *method;
	const char *probe_values[PROBE_OPTIONS]; /* in the order of the probe's options; NULL: not given */
	char probe_text[512], probe_given[512];  /* what they point into, and the same as it was given */
	int fields;                              /* values of an activation */
	int64_t period_ns, period_step_ns; /* of the first thread, and how much longer each other's is than the last */
	int64_t duration_ns; /* 0: by samples */
	int64_t samples;     /* due times of the first thread; 0: by duration */
	int64_t warmup_ns;
	struct cpus cpus; /* the CPUs to measure */
	bool cpus_given;
	int threads;
	enum policy policy, asked_policy; /* they differ when the privilege is missing and that is allowed */
	int priority, asked_priority;
	char refused[576]; /* why the kernel refused the policy asked for; empty: it did not */
	int64_t phase_ns;       /* between the due times of neighbours; -1: spread evenly over a period */
	int64_t align_ns;       /* of the first due time behind a full second; -1: at any time */
	int64_t break_ns;       /* the run ends with the first latency above it; 0: with none */
	int64_t dma_latency_us; /* -1: leave /dev/cpu_dma_latency alone */
	int64_t timer_slack_ns; /* of measuring threads with POLICY_OTHER; 0: as they inherit it */
	bool lock_memory, keep_samples, allow_unprivileged, stop_on_eof;
	bool until_decided; /* by who watches; for the record only */
	const char *claims; /* what the host judges the run by, as it says so; for the record only; NULL: nothing */
	int64_t checkpoint_ns, progress_ns;
	int64_t stream_bytes; /* of RAM for what a host has not fetched yet; 0: it fetches the record after the run */
	int64_t limits_ns[ABOVE_LIMITS]; /* what the reaction is to stay below, in the order given */
	int n_limits;
	const char *trace;       /* what of the kernel's events to record, see trace.h; NULL: nothing */
	const char *marks[2];    /* that begin and end an activation of an application, see trace/marks.h; NULL: none */
	int64_t trace_blocks_ns; /* they are on and off by turns, for this long; 0: on throughout */
	struct running_load loads[CONFIG_LOADS];
	int n_loads;
	const char *settings[CONFIG_SETTINGS]; /* that the run has while it lasts, see run/settings.h */
	int n_settings;
	char arguments[2048]; /* as given */
};

/* What holds for options that are not given. */
void config_set_presets(struct config *config);

/*
 * Checks options against each other and fills in what follows from them: the method, the CPUs. Looks at the machine: CPUs, and
 * what its kernel can do. 0, or -EINVAL with the reason as a sentence in why.
 */
int config_complete(struct config *config, char *why, size_t room);

/* The CPUs alone, which loads want to know as well. The same answers. */
int config_choose_cpus(struct config *config, char *why, size_t room);

int64_t config_period_ns(const struct config *config, int thread);

/* Due times that a thread shall measure, whichever way it was asked: as many as come until the first thread has its own. */
uint64_t config_count(const struct config *config, int thread);

/* From the first due time to the last, off the grid as if every wake-up were on time. A double: no product overflows. */
double config_length_ns(const struct config *config);

#endif
