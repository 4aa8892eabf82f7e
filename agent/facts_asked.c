/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "facts_parts.h"

#include "run.h"

#include <stdio.h>

void facts_asked(struct run *run)
{
	const struct config *config = run->config;
	char text[CPUS_TEXT];
	size_t used = 0;
	const struct {
		const char *key;
		int64_t value;
	} numbers[] = {
		{ "period_ns", config->period_ns },     { "duration_ns", config->duration_ns },
		{ "samples", config->samples },         { "warmup_ns", config->warmup_ns },
		{ "threads", config->threads },         { "priority", config->asked_priority },
		{ "phase_ns", config->phase_ns },       { "dma_latency_us", config->dma_latency_us },
		{ "checkpoint_ns", config->checkpoint_ns },
	};

	fact(run, MOMENT_ASKED, "args", config->arguments);
	fact(run, MOMENT_ASKED, "probe", config->probe->name);
	fact(run, MOMENT_ASKED, "probe_options", config->probe_given);
	fact(run, MOMENT_ASKED, "method", config->method->name);
	if (config->probe->proxy_of)
		fact(run, MOMENT_ASKED, "proxy_of", config->probe->proxy_of);
	fact(run, MOMENT_ASKED, "policy", policy_name((int)config->asked_policy));
	fact(run, MOMENT_ASKED, "lock_memory", config->lock_memory ? "yes" : "no");
	fact(run, MOMENT_ASKED, "record", config->keep_samples ? "samples" : "summary");
	fact(run, MOMENT_ASKED, "allow_unprivileged", config->allow_unprivileged ? "yes" : "no");
	if (*config->refused)
		fact(run, MOMENT_START, "policy_refused", config->refused);
	if (config->until_decided)
		fact(run, MOMENT_ASKED, "until_decided", "yes");
	cpus_format(&config->cpus, text, sizeof(text));
	fact(run, MOMENT_ASKED, "cpus", text);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		fact_number(run, WHOLE_RUN, MOMENT_ASKED, numbers[i].key, numbers[i].value);
	if (config->period_step_ns)
		fact_number(run, WHOLE_RUN, MOMENT_ASKED, "period_step_ns", config->period_step_ns);
	text[0] = '\0';
	for (int i = 0; i < config->n_loads && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
					 config->loads[i].name);
	fact(run, MOMENT_ASKED, "loads", text);
	used = 0;
	text[0] = '\0';
	for (int i = 0; i < config->n_limits; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%lld", i ? "," : "",
					 (long long)config->limits_ns[i]);
	fact(run, MOMENT_ASKED, "limits_ns", text);
	if (!config->trace)
		return;
	fact(run, MOMENT_ASKED, "trace", config->trace);
	fact_number(run, WHOLE_RUN, MOMENT_ASKED, "trace_blocks_ns", config->trace_blocks_ns);
	fact_number(run, WHOLE_RUN, MOMENT_ASKED, "trace_seed", run->trace.seed);
}
