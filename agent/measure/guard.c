/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "measure/guard.h"

#include "system/clock.h"
#include "system/threads.h"

#include <stdlib.h>
#include <sys/resource.h>

enum { LOOK_NS = 500000000, PRIORITY_MOST = 99 };

/* A signal handler has no other way to find the threads; it may interrupt any thread, so it looks at them only while `guarding`. */
static struct run *guarded;
static uint32_t guarding;

/* CPU time used, of a measuring thread and of the one that its probe has besides. */
struct budget {
	int64_t used_ns[2];
};

static void demote(const struct worker *worker)
{
	int helper = (int)word_load(&worker->helper);

	sys_set_policy(worker->tid, POLICY_OTHER, 0);
	if (helper)
		sys_set_policy(helper, POLICY_OTHER, 0);
}

/* RLIMIT_RTTIME: a thread ran that long without sleeping. Only what is safe in a signal handler. */
static void over_limit(int signal)
{
	int saved = errno;

	(void)signal;
	for (int i = 0; word_load(&guarding) && i < guarded->config->threads; i++)
		demote(&guarded->workers[i]);
	errno = saved;
}

/* Of a thread that is not there: 0. */
static int64_t cpu_time_ns(int tid)
{
	const clockid_t clock = (clockid_t)(~(unsigned int)tid << 3 | 6); /* the kernel's number: of a thread, as the scheduler counts */
	struct timespec t;

	return !tid || clock_gettime(clock, &t) < 0 ? 0 : (int64_t)t.tv_sec * NS_PER_SECOND + t.tv_nsec;
}

/* CPU time that the thread has used since it was last asked. */
static int64_t spent_ns(int tid, int64_t *before_ns)
{
	int64_t used_ns = cpu_time_ns(tid), spent_ns = used_ns - *before_ns;

	*before_ns = used_ns;
	return spent_ns;
}

/* On one CPU the two take turns: neither may ever use half of it, and both together all. */
static int64_t most_of_a_cpu_ns(const struct worker *worker, struct budget *budget)
{
	int helper = (int)word_load(&worker->helper);
	int64_t own_ns = spent_ns(worker->tid, &budget->used_ns[0]), helper_ns = spent_ns(helper, &budget->used_ns[1]);

	if (helper && !worker->helper_apart)
		return own_ns + helper_ns;
	return helper_ns > own_ns ? helper_ns : own_ns;
}

static void check(struct run *run, struct budget *budgets, int64_t passed_ns)
{
	for (int i = 0; i < run->config->threads; i++) {
		struct worker *worker = &run->workers[i];

		if (word_load(&worker->done))
			continue;
		int64_t most_ns = most_of_a_cpu_ns(worker, &budgets[i]);

		if (most_ns <= passed_ns / 2)
			continue;
		demote(worker);
		run_note(run, i, "budget", "used %lld ms of CPU time in %lld ms; its real-time policy was taken away",
			 (long long)(most_ns / 1000000), (long long)(passed_ns / 1000000));
		run_ask_to_stop(run, END_GUARD, "a measuring thread used more than half a CPU");
	}
}

/* Looks between due times: half a period away from the first thread's, unless it would come too late for a guard by that. */
static int64_t next_look_ns(const struct run *run, int64_t now_ns)
{
	int64_t next_ns = now_ns + LOOK_NS, period_ns = run->config->period_ns;

	return period_ns > LOOK_NS ? next_ns : next_ns - (next_ns - run->origin_ns) % period_ns + period_ns / 2;
}

static void *guard_main(void *argument)
{
	struct guard *guard = argument;
	struct run *run = guard->run;
	struct budget *budgets = calloc((size_t)run->config->threads, sizeof(*budgets));

	gate_pass(&run->gate);
	int64_t checked_ns = clock_now_ns();

	while (budgets && !word_load(&guard->stop)) {
		sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next_look_ns(run, clock_now_ns()));
		int64_t now_ns = clock_now_ns();

		if (now_ns - checked_ns < NS_PER_SECOND)
			continue;
		check(run, budgets, now_ns - checked_ns);
		checked_ns = now_ns;
	}
	free(budgets);
	return NULL;
}

/* The pthread call: musl answers ENOSYS to sched_setscheduler() only. */
static int set_priority(const struct guard *guard)
{
	struct sched_param parameter = { .sched_priority = guard->priority };

	return -pthread_setschedparam(guard->thread, SCHED_FIFO, &parameter);
}

int guard_start(struct guard *guard, struct run *run)
{
	const struct rlimit limit = { 500000, 2000000 }; /* microseconds: a warning signal, then SIGKILL */
	struct sigaction action = { .sa_handler = over_limit, .sa_flags = SA_RESTART };
	struct config *config = run->config;

	if (config->policy == POLICY_OTHER)
		return 0;
	guard->run = run;
	guarded = run;
	word_store(&guarding, 1);
	sigaction(SIGXCPU, &action, NULL);
#ifdef RLIMIT_RTTIME
	setrlimit(RLIMIT_RTTIME, &limit);
#endif
	int err = thread_start(&guard->thread, guard_main, guard);

	if (err)
		return err;
	guard->runs = true;

	/* An RTPRIO limit may end at the measuring threads' own priority. */
	guard->priority = config->priority < PRIORITY_MOST ? config->priority + 1 : PRIORITY_MOST;
	err = set_priority(guard);
	if (err == -EPERM) {
		guard->priority = config->priority;
		err = set_priority(guard);
	}
	return err;
}

void guard_stop(struct guard *guard)
{
	if (!guard->runs)
		return;
	thread_end(guard->thread, &guard->stop);
	word_store(&guarding, 0);
}
