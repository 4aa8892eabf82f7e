/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "facts_parts.h"

#include "run.h"

enum { RESET_ON_FORK = 0x40000000 };

/* Asked of the kernel from outside the thread: another process may have changed it. Written when first seen and when it changes. */
void facts_check_thread(struct run *run, struct worker *worker)
{
	int task = worker_task(worker), policy = sys_get_policy(task), priority = sys_get_priority(task);

	/* A thread that makes another the measured one steps back itself; one that ends is nobody any more. */
	if (policy < 0 || priority < 0 || task != worker_task(worker) || word_load(&worker->done))
		return;
	policy &= ~RESET_ON_FORK;
	if (worker->seen && policy == worker->seen_policy && priority == worker->seen_priority)
		return;
	if (policy != (int)worker->policy || priority != worker->priority)
		record_event(&run->record, run_time_ns(run), worker->number, "policy_changed", policy_name(policy));
	record_fact(&run->record, run_time_ns(run), worker->number, MOMENT_DURING, "policy", "%s", policy_name(policy));
	fact_number(run, worker->number, MOMENT_DURING, "priority", priority);
	worker->seen = true;
	worker->seen_policy = policy;
	worker->seen_priority = priority;
}

static void facts_of_thread(struct run *run, int thread, enum moment moment, const struct evidence *evidence)
{
	char text[CPUS_TEXT];

	record_fact(&run->record, run_time_ns(run), thread, moment, "policy", "%s", policy_name(evidence->policy));
	fact_number(run, thread, moment, "priority", evidence->priority);
	fact_number(run, thread, moment, "cpu", evidence->cpu);
	if (evidence->timer_slack_ns < 0)
		record_fact(&run->record, run_time_ns(run), thread, moment, "timer_slack_ns",
			    "unavailable: no timer of this thread is measured");
	else
		fact_number(run, thread, moment, "timer_slack_ns", evidence->timer_slack_ns);
	cpus_format(&evidence->affinity, text, sizeof(text));
	record_fact(&run->record, run_time_ns(run), thread, moment, "affinity", "%s", text);
}

/* after: -1 if the kernel does not tell. */
static void fact_if_told(struct run *run, int thread, const char *key, int64_t before, int64_t after)
{
	if (after < 0)
		record_fact(&run->record, run_time_ns(run), thread, MOMENT_END, key, "unavailable: the kernel does not tell");
	else
		fact_number(run, thread, MOMENT_END, key, after - before);
}

static void facts_of_loop(struct run *run, int thread, const struct evidence *before, const struct evidence *after)
{
	const enum moment end = MOMENT_END;

	fact_number(run, thread, end, "minor_faults", after->minor_faults - before->minor_faults);
	fact_number(run, thread, end, "major_faults", after->major_faults - before->major_faults);
	fact_number(run, thread, end, "voluntary_switches", after->voluntary_switches - before->voluntary_switches);
	fact_number(run, thread, end, "involuntary_switches", after->involuntary_switches - before->involuntary_switches);
	fact_number(run, thread, end, "cpu_time_ns", after->cpu_time_ns - before->cpu_time_ns);
	fact_if_told(run, thread, "migrations", before->migrations, after->migrations);
	fact_if_told(run, thread, "io_calls", before->io_calls, after->io_calls);
}

void facts_of_worker(struct run *run, const struct worker *worker)
{
	facts_of_thread(run, worker->number, MOMENT_START, &worker->start);
	facts_of_thread(run, worker->number, MOMENT_END, &worker->end);
	facts_of_loop(run, worker->number, &worker->before, &worker->end);
	fact_number(run, worker->number, MOMENT_START, "tid", worker_task(worker));
	fact_number(run, worker->number, MOMENT_START, "warmup_activations", worker->warmup_activations);
	for (int file = 0; file < worker->n_files; file++)
		record_content(&run->record, run_time_ns(run), MOMENT_END, worker->files[file].path, 0,
			       worker->files[file].content, worker->files[file].length);
}
