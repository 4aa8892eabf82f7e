/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "facts/kinds.h"

#include "system/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { FEW_STOPS = 50, STOPS_SHARE = 50 }; /* a contended lock or a page of a file is waited for now and then, too */

/* "PID NAME" of who traces, whose name may be gone by now. */
static void fact_of_tracer(struct run *run, int thread, enum moment moment, int64_t tracer)
{
	char path[64], name[64];

	if (tracer <= 0) {
		run_fact(run, thread, moment, "tracer", "%s", tracer ? "unavailable: the kernel does not tell" : "none");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%lld/comm", (long long)tracer);
	if (text_read_line(path, name, sizeof(name)) < 0)
		name[0] = '\0';
	run_fact(run, thread, moment, "tracer", "%lld %s", (long long)tracer, name);
}

/* Between two looks it had an ordinary policy for a while: the fair scheduler did something with it. */
static void note_other_and_back(struct run *run, const struct worker *worker, int policy, int64_t fair_ns)
{
	bool real_time = policy == POLICY_FIFO || policy == POLICY_RR || policy == POLICY_DEADLINE;
	bool told = worker->seen && fair_ns != -1 && worker->seen_fair_ns != -1;

	if (told && real_time && policy == worker->seen_policy && fair_ns != worker->seen_fair_ns)
		record_event(&run->record, run_time_ns(run), worker->number, "policy_changed", "other and back");
}

/* Activations since the last look; those that were due where the thread does not count them, as in the warm-up. */
static int64_t activations_since(const struct worker *worker, int64_t now_ns)
{
	uint32_t before = worker->log.before.noted;

	if (worker->conditions.every && before)
		return word_load(&worker->conditions.now.noted) - before;
	return (now_ns - worker->seen_at_ns) / worker->period_ns + 1;
}

/* A thread sleeps once for each activation. One that slept much more often was stopped, as a tracer does at each system call. */
static void note_stops(struct run *run, struct worker *worker, int task)
{
	int64_t sleeps = thread_told(task, "status", "voluntary_ctxt_switches"), now_ns = run_time_ns(run);
	int64_t due = activations_since(worker, now_ns), more = sleeps - worker->seen_sleeps - due;
	const struct method *method = worker->method;
	bool once = method->on_grid && !method->no_timer && !method->works;
	char text[64];

	if (worker->seen && once && more > FEW_STOPS + due / STOPS_SHARE) {
		snprintf(text, sizeof(text), "%lld in %lld activations", (long long)more, (long long)due);
		record_event(&run->record, now_ns, worker->number, "stops", text);
	}
	worker->seen_sleeps = sleeps;
	worker->seen_at_ns = now_ns;
}

/* What the thread can't ask cheaply itself. */
static void look_from_outside(struct run *run, struct worker *worker)
{
	int task = worker_task(worker);
	int64_t tracer = thread_told(task, "status", "TracerPid");
	int nice = getpriority(PRIO_PROCESS, (id_t)task);
	struct cpus affinity;

	if (!worker->seen || nice != worker->seen_nice)
		run_fact_number(run, worker->number, MOMENT_DURING, "nice", nice);
	worker->seen_nice = nice;

	if (cpus_get_affinity(task, &affinity) == 0 && !word_load(&worker->done))
		conditions_look(&worker->log, worker->cpu, &affinity);
	if (tracer < 0 || tracer == worker->seen_tracer)
		return;
	worker->seen_tracer = tracer;
	fact_of_tracer(run, worker->number, MOMENT_DURING, tracer);
}

/* Asked of the kernel from outside the thread: another process may have changed it. Written when first seen and when it changes. */
void facts_check_thread(struct run *run, struct worker *worker)
{
	int task = worker_task(worker), policy = sys_get_policy(task), priority = sys_get_priority(task);

	/* A thread that makes another the measured one steps back itself; one that ends is nobody any more. */
	if (policy < 0 || priority < 0 || task != worker_task(worker) || word_load(&worker->done))
		return;
	look_from_outside(run, worker);
	policy &= ~POLICY_RESET_ON_FORK;
	int64_t fair_ns = thread_fair_ns(task);

	note_other_and_back(run, worker, policy, fair_ns);
	worker->seen_fair_ns = fair_ns;
	note_stops(run, worker, task);
	if (worker->seen && policy == worker->seen_policy && priority == worker->seen_priority)
		return;
	if (policy != (int)worker->policy || priority != worker->priority)
		record_event(&run->record, run_time_ns(run), worker->number, "policy_changed", policy_name(policy));
	run_fact(run, worker->number, MOMENT_DURING, "policy", "%s", policy_name(policy));
	run_fact_number(run, worker->number, MOMENT_DURING, "priority", priority);
	worker->seen = true;
	worker->seen_policy = policy;
	worker->seen_priority = priority;
}

static void facts_of_thread(struct run *run, int thread, enum moment moment, const struct evidence *evidence)
{
	char text[CPUS_TEXT];

	run_fact(run, thread, moment, "policy", "%s", policy_name(evidence->policy));
	run_fact_number(run, thread, moment, "priority", evidence->priority);
	run_fact_number(run, thread, moment, "cpu", evidence->cpu);
	if (evidence->timer_slack_ns < 0)
		run_fact(run, thread, moment, "timer_slack_ns", "unavailable: no timer of this thread is measured");
	else
		run_fact_number(run, thread, moment, "timer_slack_ns", evidence->timer_slack_ns);
	fact_of_tracer(run, thread, moment, evidence->tracer);
	cpus_format(&evidence->affinity, text, sizeof(text));
	run_fact(run, thread, moment, "affinity", "%s", text);
}

/* after: -1 if the kernel does not tell. */
static void fact_if_told(struct run *run, int thread, const char *key, int64_t before, int64_t after)
{
	if (after < 0)
		run_fact(run, thread, MOMENT_END, key, "unavailable: the kernel does not tell");
	else
		run_fact_number(run, thread, MOMENT_END, key, after - before);
}

static void facts_of_loop(struct run *run, int thread, const struct evidence *before, const struct evidence *after)
{
	const enum moment end = MOMENT_END;

	run_fact_number(run, thread, end, "minor_faults", after->minor_faults - before->minor_faults);
	run_fact_number(run, thread, end, "major_faults", after->major_faults - before->major_faults);
	run_fact_number(run, thread, end, "voluntary_switches", after->voluntary_switches - before->voluntary_switches);
	run_fact_number(run, thread, end, "involuntary_switches", after->involuntary_switches - before->involuntary_switches);
	run_fact_number(run, thread, end, "cpu_time_ns", after->cpu_time_ns - before->cpu_time_ns);
	fact_if_told(run, thread, "migrations", before->migrations, after->migrations);
	fact_if_told(run, thread, "io_calls", before->io_calls, after->io_calls);
}

/* How the thread looked at itself. */
static void facts_of_conditions(struct run *run, int thread, const struct conditions *conditions)
{
	const enum moment start = MOMENT_START;

	if (!conditions->mean) {
		run_fact(run, thread, start, "cpu_checks", "unavailable: this thread only collects");
		return;
	}
	run_fact(run, thread, start, "cpu_checks", "%s activation%s",
		 conditions->every ? "every" : "random", conditions->every ? "" : "s");
	run_fact_number(run, thread, start, "check_mean", conditions->mean);
	run_fact_number(run, thread, start, "check_seed", conditions->seed);
	if (conditions->delay_fd < 0)
		run_fact(run, thread, start, "run_delay", "unavailable: %s", strerror(-conditions->delay_fd));
	else
		run_fact(run, thread, start, "run_delay", "schedstat");
}

void facts_of_worker(struct run *run, const struct worker *worker)
{
	facts_of_thread(run, worker->number, MOMENT_START, &worker->start);
	facts_of_thread(run, worker->number, MOMENT_END, &worker->end);
	note_other_and_back(run, worker, worker->end.policy, worker->end.fair_ns);
	facts_of_conditions(run, worker->number, &worker->conditions);
	facts_of_loop(run, worker->number, &worker->before, &worker->end);
	run_fact_number(run, worker->number, MOMENT_START, "tid", worker_task(worker));
	run_fact_number(run, worker->number, MOMENT_START, "warmup_activations", worker->warmup_activations);
	for (int file = 0; file < worker->n_files; file++)
		record_content(&run->record, run_time_ns(run), MOMENT_END, worker->files[file].path, 0,
			       worker->files[file].content, worker->files[file].length);
}
