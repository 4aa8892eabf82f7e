/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that hardly sleeps must lose its policy, and the run must end. It spins with a real-time policy, as a measuring thread
 * does, so that it gets the time that it must be seen to use, however busy the machine is. It gives the CPU away for a moment
 * ten times a second, before the kernel's own limit takes its policy, and it ends by itself after PATIENCE_S.
 */
#include "system/sys.h"

#include "measure/guard.h"

#include "system/clock.h"
#include "system/threads.h"

#include "check.h"

#include <string.h>

enum { PRIORITY = 10, PATIENCE_S = 120, REST_NS = 100000000 };

/* Which thread spins: the measuring one, the one that its probe has besides, or both on one CPU. */
static enum { WORKER_SPINS, HELPER_SPINS, BOTH_SPIN } who;

static int64_t own_cpu_time_ns(void)
{
	struct timespec t;

	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return (int64_t)t.tv_sec * NS_PER_SECOND + t.tv_nsec;
}

/* Each of two takes two fifths of the CPU, so that neither is too much alone. */
static void spin_until_stopped(const struct worker *worker)
{
	int64_t began_ns = clock_now_ns(), now_ns = began_ns, rested_ns = began_ns;

	while (!word_load(&worker->stop) && now_ns - began_ns < PATIENCE_S * NS_PER_SECOND) {
		now_ns = clock_now_ns();
		if (who == BOTH_SPIN && own_cpu_time_ns() > (now_ns - began_ns) * 2 / 5)
			usleep(1000);
		if (now_ns - rested_ns < REST_NS)
			continue;
		rested_ns = now_ns;
		usleep(1000); /* a shorter one may be over before the kernel takes the CPU away, which is no sleep to its limit */
	}
}

static void *spin_besides(void *argument)
{
	struct worker *worker = argument;

	sys_set_policy(0, POLICY_FIFO, PRIORITY); /* also where a thread does not inherit it */
	word_store(&worker->helper, (uint32_t)sys_gettid());
	spin_until_stopped(worker);
	return NULL;
}

static pthread_t start_besides(struct worker *worker)
{
	struct cpus all, one = { { 0 } };
	pthread_t helper;

	CHECK(cpus_get_affinity(0, &all) == 0);
	cpus_add(&one, cpus_nth(&all, 0));
	CHECK(cpus_set_affinity(0, &one) == 0);
	CHECK(thread_start(&helper, spin_besides, worker) == 0);
	while (!word_load(&worker->helper))
		usleep(1000);
	return helper;
}

/* Until it is stopped. */
static void *spin(void *argument)
{
	struct worker *worker = argument;

	pthread_t helper = 0;

	worker->tid = who == HELPER_SPINS ? getpid() : sys_gettid();
	word_store(&worker->helper, who == HELPER_SPINS ? (uint32_t)sys_gettid() : 0);
	sys_set_policy(0, POLICY_FIFO, PRIORITY); /* who may not do this may have no guard either */
	if (who == BOTH_SPIN)
		helper = start_besides(worker);
	gate_arrive(worker->gate);
	spin_until_stopped(worker);
	if (who == BOTH_SPIN)
		pthread_join(helper, NULL);
	return NULL;
}

static bool was_asked_to_stop(struct run *run)
{
	pthread_mutex_lock(&run->notices.mutex);
	bool asked = run->notices.stop_asked;

	pthread_mutex_unlock(&run->notices.mutex);
	return asked;
}

static void await_stop(struct run *run)
{
	int64_t give_up_ns = clock_now_ns() + PATIENCE_S * NS_PER_SECOND;

	while (!was_asked_to_stop(run) && clock_now_ns() < give_up_ns)
		usleep(10000);
}

/* The period is long: the guard looks in time nevertheless. */
static void a_thread_that_spins_loses_its_policy(int64_t period_ns)
{
	struct config config = { .threads = 1, .policy = POLICY_FIFO, .priority = PRIORITY, .period_ns = period_ns };
	struct worker worker;
	struct guard guard = { .runs = false };
	struct run run;

	memset(&worker, 0, sizeof(worker));
	memset(&run, 0, sizeof(run));
	run.config = &config;
	run.workers = &worker;
	CHECK(pipe(run.wake_fds) == 0);
	pthread_mutex_init(&run.notices.mutex, NULL);
	gate_init(&run.gate, run.wake_fds[1]);
	worker.gate = &run.gate;
	CHECK(thread_start(&worker.thread, spin, &worker) == 0);
	gate_await(&run.gate, 1);
	int tid = who == HELPER_SPINS ? (int)word_load(&worker.helper) : worker.tid;

	int before = sys_get_policy(tid), err = guard_start(&guard, &run);

	gate_open(&run.gate, clock_now_ns());
	if (err == -EPERM) {
		guard_stop(&guard);
		SKIP("without the privilege for real time there is no guard");
	}
	CHECK(err == 0 && before == POLICY_FIFO);
	await_stop(&run);
	guard_stop(&guard);
	CHECK(run.notices.stop_asked);
	CHECK(run.notices.reason == END_GUARD);
	CHECK(run.notices.n_events > 0);
	CHECK(!strcmp(run.notices.events[0].kind, "budget"));
	CHECK(sys_get_policy(tid) == POLICY_OTHER);
	word_store(&worker.stop, 1);
	pthread_join(worker.thread, NULL);
	CHECK(close(run.wake_fds[0]) == 0 && close(run.wake_fds[1]) == 0);
}

int main(void)
{
	sys_init();
	a_thread_that_spins_loses_its_policy(1000000);
	who = HELPER_SPINS;
	a_thread_that_spins_loses_its_policy(3600 * NS_PER_SECOND);
	who = BOTH_SPIN;
	a_thread_that_spins_loses_its_policy(3600 * NS_PER_SECOND);
	return EXIT_SUCCESS;
}
