/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/ipc/sender.h"

#include "measure/worker.h"
#include "system/clock.h"
#include "system/threads.h"

#include <stdio.h>
#include <sys/prctl.h>

/* How often in a period it looks whether a late answer has come. */
enum { LOOKS = 16 };

#define PAUSE_NS 1000000 /* between two looks whether the other has ended */

static void set_up(struct exchange *exchange)
{
	const struct worker *worker = exchange->worker;
	sigset_t stop;
	char name[24];
	int err = 0;

	snprintf(name, sizeof(name), "rtproof-%d-post", worker->number);
	prctl(PR_SET_NAME, name, 0, 0, 0);
	sigemptyset(&stop);
	sigaddset(&stop, WORKER_STOP_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &stop, NULL); /* the receiver may take it by hand */
	if (cpus_count(&exchange->cpus))
		err = cpus_set_affinity(0, &exchange->cpus);
	if (!err && worker->policy != POLICY_OTHER)
		err = sys_set_policy(0, (int)worker->policy, worker->priority);
	exchange->refused = err;
	exchange->policy = sys_get_policy(0);
	exchange->priority = sys_get_priority(0);
	word_store(&exchange->worker->helper, (uint32_t)sys_gettid());
	sem_post(&exchange->ready);
}

/* The stimulus is the receiver's from the word on. */
static int64_t post(struct exchange *exchange, int64_t now_ns)
{
	struct stimulus *stimulus = &exchange->stimulus;
	int64_t late_ns = now_ns - stimulus->due_ns;

	if (late_ns > exchange->latest_ns)
		exchange->latest_ns = late_ns;
	stimulus_give(stimulus, now_ns);
	exchange->skipped += stimulus->skipped;
	int64_t next_ns = stimulus->due_ns + stimulus->period_ns;

	stimulus->given_ns = clock_now_ns();
	word_store(&exchange->turn, RECEIVERS);
	int err = exchange->channel->post(exchange);

	if (err < 0)
		word_store(&exchange->error, (uint32_t)-err);
	return next_ns;
}

/* When to look again. A post that has no answer yet holds the next one back. */
static int64_t look(struct exchange *exchange)
{
	int64_t now_ns = clock_now_ns();

	if (is_posted(exchange))
		return now_ns + exchange->worker->period_ns / LOOKS;
	return exchange->stimulus.due_ns > now_ns ? exchange->stimulus.due_ns : post(exchange, now_ns);
}

static void *sender_main(void *argument)
{
	struct exchange *exchange = argument;
	struct worker *worker = exchange->worker;
	int64_t look_ns = exchange->stimulus.due_ns;

	set_up(exchange);
	while (!word_load(&worker->stop) && !word_load(&exchange->left) && !word_load(&exchange->error))
		if (sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, look_ns) != -EINTR)
			look_ns = look(exchange);
	while (!word_load(&exchange->left)) {
		worker_wake(worker->tid);
		if (exchange->channel->deaf)
			exchange->channel->post(exchange);
		sys_sleep(CLOCK_MONOTONIC, 0, PAUSE_NS);
	}
	word_store(&worker->helper, 0);
	return NULL;
}

int sender_start(struct exchange *exchange, int cpu)
{
	struct worker *worker = exchange->worker;

	if (cpu >= 0)
		cpus_add(&exchange->cpus, cpu);
	exchange->cpu = cpu >= 0 ? cpu : worker->cpu;
	worker->helper_apart = exchange->cpu != worker->cpu;
	sem_init(&exchange->ready, 0, 0);
	worker->failed_at = "start the thread that wakes it";
	int err = thread_start(&exchange->sender, sender_main, exchange);

	exchange->sends = !err;
	while (!err && sem_wait(&exchange->ready) < 0)
		;
	return err ? err : exchange->refused;
}

void sender_end(struct exchange *exchange)
{
	struct worker *worker = exchange->worker;

	word_store(&exchange->left, 1);
	for (uint32_t helper = word_load(&worker->helper); helper; helper = word_load(&worker->helper)) {
		worker_wake((int)helper);
		sys_sleep(CLOCK_MONOTONIC, 0, PAUSE_NS);
	}
	if (exchange->sends)
		pthread_join(exchange->sender, NULL);
}
