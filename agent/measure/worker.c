/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "measure/worker.h"

#include "system/clock.h"
#include "system/processes.h"
#include "system/text.h"
#include "system/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum {
	STACK_PREFAULT = 64 * 1024,
};

static int64_t timeval_ns(struct timeval t)
{
	return ((int64_t)t.tv_sec * 1000000 + t.tv_usec) * 1000;
}

/* Calls of the families of read() and write(); with CONFIG_TASK_IO_ACCOUNTING. */
static int64_t count_io_calls(const struct worker *worker)
{
	int64_t reads = thread_told(worker->tid, "io", "syscr");

	return reads < 0 ? -1 : reads + thread_told(worker->tid, "io", "syscw");
}

static void read_usage(struct evidence *evidence)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage) < 0)
		return;
	evidence->minor_faults = usage.ru_minflt;
	evidence->major_faults = usage.ru_majflt;
	evidence->voluntary_switches = usage.ru_nvcsw;
	evidence->involuntary_switches = usage.ru_nivcsw;
	evidence->cpu_time_ns = timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
}

/* The CPU a thread ran on last. -1: the kernel does not tell. */
static int cpu_of(int tid)
{
	struct taskstat stat;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	return taskstat_read(path, &stat) ? -1 : stat.cpu;
}

int worker_task(const struct worker *worker)
{
	uint32_t task = word_load(&worker->task);

	return task ? (int)task : worker->tid;
}

void worker_say(struct worker *worker, const char *text, size_t length)
{
	pthread_mutex_lock(&worker->said_mutex);
	put_bytes(&worker->said, text, length);
	pthread_mutex_unlock(&worker->said_mutex);
}

int worker_adopt(struct worker *worker, int task)
{
	int policy = (int)worker->policy, err = 0;

	worker->failed_at = "set the policy of the measured task";
	if (sys_get_policy(task) != policy || sys_get_priority(task) != worker->priority)
		err = sys_set_policy(task, policy, worker->priority);
	if (err)
		return err;
	word_store(&worker->task, (uint32_t)task);
	return worker->priority > 1 ? sys_set_policy(0, policy, worker->priority - 1) : 0;
}

/* About the thread whose lateness is measured. */
static void read_state(const struct worker *worker, struct evidence *evidence)
{
	int task = worker_task(worker);
	unsigned int cpu = 0;

	evidence->policy = sys_get_policy(task) & ~POLICY_RESET_ON_FORK;
	evidence->priority = sys_get_priority(task);
	if (task != worker->tid)
		evidence->cpu = cpu_of(task);
	else
		evidence->cpu = syscall(SYS_getcpu, &cpu, (void *)0, (void *)0) == 0 ? (int)cpu : -1;
	evidence->timer_slack_ns = worker->method->no_timer ? -1 : prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	evidence->migrations = thread_told(worker->tid, "sched", "se.nr_migrations"); /* with CONFIG_SCHED_DEBUG */
	evidence->tracer = thread_told(worker->tid, "status", "TracerPid");
	evidence->fair_ns = thread_fair_ns(task);
	cpus_get_affinity(task, &evidence->affinity);
}

/* Not stopped, or with something still to be brought in. */
static bool goes_on(struct worker *worker)
{
	if (!word_load(&worker->stop))
		return true;
	return worker->probe->pending && worker->probe->pending(worker);
}

/* When the next activation is due, as far as this one tells. */
static int64_t due_after(const struct worker *worker, const struct activation *activation)
{
	if (worker->aim_ns)
		return worker->aim_ns;
	if (worker->method->on_grid || worker->method->external)
		return activation->due_ns + worker->period_ns * (1 + (int64_t)activation->missed);
	return activation->due_ns + activation->values[worker->fields - 1] + worker->period_ns;
}

/*
 * Due times before the origin are thrown away. If the last of them came so late that measured ones had passed, it is the
 * answer to the first of those: *late is that activation, or one that was measured already, and has no due time otherwise.
 */
static int warm_up(struct worker *worker, int64_t first_due_ns, struct activation *late)
{
	struct activation activation = { .due_ns = 0 };
	int64_t next_ns = first_due_ns - worker->warmup_ns / worker->period_ns * worker->period_ns;

	while (next_ns < first_due_ns && goes_on(worker)) {
		int err = worker->probe->take(worker, &activation);

		if (err == -EINTR)
			continue;
		if (err)
			return err;
		/* The source lost those between, or nothing came from outside before. */
		if ((worker->method->on_grid || worker->method->external) && activation.due_ns >= first_due_ns) {
			*late = activation;
			return 0;
		}
		worker->warmup_activations++;
		next_ns = due_after(worker, &activation);
	}
	if (worker->method->on_grid && next_ns > first_due_ns) {
		late->due_ns = first_due_ns;
		for (uint32_t i = 0; i < worker->fields; i++)
			late->values[i] = activation.due_ns + activation.values[i] - first_due_ns;
		late->missed = (uint32_t)((next_ns - first_due_ns) / worker->period_ns - 1);
	}
	return 0;
}

/*
 * What a reader of the record will take for the due time of the next activation. known: that it leads there, since off the
 * grid the first one, the one behind a hole and one that drifted away can't be derived.
 */
struct dues {
	bool known;
	int64_t next_ns;
};

/* Events from outside keep no period exactly; unless exact, their due times are told anew once they are off by this part of it. */
enum { DRIFT = 16 };

static bool has_drifted(const struct worker *worker, const struct dues *dues, int64_t due_ns)
{
	int64_t most_ns = worker->method->exact ? 0 : worker->period_ns / DRIFT;

	return dues->next_ns - due_ns > most_ns || due_ns - dues->next_ns > most_ns;
}

/* Off the grid the writer can't know a due time that nothing before leads to. */
static void hand_over(struct worker *worker, const struct activation *activation, int64_t origin_ns, struct dues *dues)
{
	struct ring *ring = &worker->ring;
	const struct method *method = worker->method;

	if (dues->known && method->external && has_drifted(worker, dues, activation->due_ns))
		dues->known = false;
	if (!dues->known) {
		dues->known = ring_settle(ring) && ring_put(ring, activation->due_ns - origin_ns, 0, RING_DUE);
		dues->next_ns = activation->due_ns;
	}
	if (dues->known)
		ring_push(ring, activation->values, worker->fields, activation->missed);
	else
		ring->lost += 1 + activation->missed;
	dues->next_ns += worker->period_ns * (1 + (int64_t)activation->missed);
	dues->known = method->on_grid || (dues->known && !ring->lost);
}

/* On the grid the due time tells how many were lost since the last one, of which some may belong to the warm-up. */
static uint64_t lost_before(const struct worker *worker, const struct activation *activation, uint64_t index, int64_t origin_ns)
{
	int64_t lost = activation->lost;

	if (lost && worker->method->on_grid)
		lost = (activation->due_ns - origin_ns - worker->phase_ns) / worker->period_ns - (int64_t)index;
	if (lost <= 0)
		return 0;
	return (uint64_t)lost < worker->count - index ? (uint64_t)lost : worker->count - index;
}

/*
 * The index of the activation that comes after this one. Due times behind the last are nobody's, and so is an activation
 * that came after so many lost ones that it is behind the last itself.
 */
static uint64_t book(struct worker *worker, struct activation *activation, uint64_t index, int64_t origin_ns, struct dues *dues)
{
	uint64_t lost = lost_before(worker, activation, index, origin_ns);

	worker->ring.lost += (uint32_t)lost;
	index += lost;
	if (index == worker->count)
		return index;
	if (activation->missed > worker->count - 1 - index)
		activation->missed = (uint32_t)(worker->count - 1 - index);
	if (lost && !worker->method->on_grid)
		dues->known = false;
	hand_over(worker, activation, origin_ns, dues);
	return index + 1 + (uint64_t)activation->missed;
}

/* Asked to stop before the end. A loop that was behind its due times is missed since it ran last. */
static void leave(struct worker *worker, uint64_t index, int64_t due_ns, int64_t ran_ns, int64_t origin_ns)
{
	int64_t first_due_ns = origin_ns + worker->phase_ns;

	if (worker->method->on_grid)
		due_ns = first_due_ns + (int64_t)index * worker->period_ns;
	worker->next_due_ns = due_ns == INT64_MIN ? first_due_ns : due_ns > ran_ns ? due_ns : ran_ns;
	worker->left_ns = clock_now_ns();
}

bool worker_stalled(const struct worker *worker)
{
	int64_t patience_ns = 10 * worker->period_ns;

	if (patience_ns < NS_PER_SECOND)
		patience_ns = NS_PER_SECOND;
	return worker->left_ns && worker->left_ns - worker->next_due_ns >= patience_ns;
}

static void break_off(struct worker *worker, int64_t latency_ns)
{
	worker->ended = true;
	snprintf(worker->why, sizeof(worker->why), "a latency of %lld ns is above --break", (long long)latency_ns);
}

/*
 * The measured loop. Nothing in here but the probe's wait and clock, the push into the ring, and behind both what the thread
 * notes about itself: no allocation, no lock, and no other system call but at the random activations of conditions_note().
 */
static int measure(struct worker *worker, struct activation *late, int64_t origin_ns)
{
	struct activation activation;
	struct dues dues = { .known = worker->method->on_grid };
	uint64_t index = late->due_ns ? book(worker, late, 0, origin_ns, &dues) : 0;
	int64_t due_ns = INT64_MIN, ran_ns = INT64_MIN;
	int64_t end_ns = worker->duration_ns == INT64_MAX ? INT64_MAX : origin_ns + worker->duration_ns;

	while (index < worker->count && due_ns < end_ns && !worker->ended && goes_on(worker)) {
		int err = worker->probe->take(worker, &activation);

		if (err == -EINTR)
			continue;
		if (err)
			return err;
		if (worker->method->external && activation.due_ns < origin_ns)
			continue; /* it came in the warm-up and is answered now */
		index = book(worker, &activation, index, origin_ns, &dues);
		if (worker->break_ns && activation.values[worker->fields - 1] > worker->break_ns)
			break_off(worker, activation.values[worker->fields - 1]);
		conditions_note(&worker->conditions);
		due_ns = due_after(worker, &activation);
		ran_ns = activation.due_ns + activation.values[worker->fields - 1];
	}
	if (index < worker->count && due_ns < end_ns && !worker->ended)
		leave(worker, index, due_ns, ran_ns, origin_ns);
	return 0;
}

/* Random, different for each thread and run, and yet the same again where time itself is: under an emulator that counts instructions. */
static uint32_t seed_of(const struct worker *worker, int64_t origin_ns)
{
	return ((uint32_t)origin_ns ^ (uint32_t)(origin_ns >> 32)) * 0x9e3779b9U + (uint32_t)worker->number * 0x85ebca6bU;
}

static void open_conditions(struct worker *worker, int64_t origin_ns)
{
	worker->conditions.cpu = worker->cpu;
	worker->conditions.policy = (int)worker->policy;
	worker->conditions.priority = worker->priority;
	conditions_open(&worker->conditions, !worker->method->collects && worker_task(worker) == worker->tid, worker->period_ns,
			seed_of(worker, origin_ns));
}

static int run_probe(struct worker *worker, int64_t origin_ns)
{
	int64_t first_due_ns = origin_ns + worker->phase_ns;
	int64_t warm_ns = worker->warmup_ns / worker->period_ns * worker->period_ns;
	struct activation late = { .due_ns = 0 };

	worker->failed_at = "prepare the probe";
	int err = worker->probe->open(worker, worker->method, first_due_ns - warm_ns, worker->period_ns);

	if (!err) {
		worker->failed_at = "measure";
		open_conditions(worker, origin_ns);
		read_state(worker, &worker->start);
		worker->before.io_calls = count_io_calls(worker);
		worker->before.io_calls = 2 * count_io_calls(worker) - worker->before.io_calls; /* without those that counting takes */
		err = warm_up(worker, first_due_ns, &late);
	}
	worker->before.migrations = worker->start.migrations;
	read_usage(&worker->before);
	if (!err)
		err = measure(worker, &late, origin_ns);
	read_usage(&worker->end); /* first: reading the rest faults and switches */
	worker->end.io_calls = count_io_calls(worker);
	if (worker->end.io_calls >= 0)
		worker->end.io_calls -= worker->conditions.reads;
	read_state(worker, &worker->end);
	conditions_close(&worker->conditions);
	worker->probe->close(worker);
	return err;
}

/* A stack that grows while measuring would fault. Volatile, or the compiler drops it. */
static void prefault_stack(void)
{
	volatile char pages[STACK_PREFAULT];

	for (size_t i = 0; i < sizeof(pages); i += 512)
		pages[i] = 0;
}

static int set_policy(const struct worker *worker)
{
	if (worker->policy == POLICY_OTHER)
		return worker->timer_slack_ns && prctl(PR_SET_TIMERSLACK, (unsigned long)worker->timer_slack_ns, 0, 0, 0) < 0 ? -errno : 0;
	if (worker->policy == POLICY_DEADLINE)
		return policy_set_deadline(worker->period_ns);
	int err = sys_set_policy(0, (int)worker->policy | POLICY_RESET_ON_FORK, worker->priority);

	return err == -EINVAL ? sys_set_policy(0, (int)worker->policy, worker->priority) : err; /* before 2.6.32 */
}

static int set_up(struct worker *worker)
{
	char name[16];
	int err = 0;

	snprintf(name, sizeof(name), "rtproof-%d", worker->number);
	prctl(PR_SET_NAME, name, 0, 0, 0);
	worker->tid = sys_gettid();
	prefault_stack();
	worker->failed_at = "bind the thread to its CPU";
	if (worker->cpu >= 0) {
		struct cpus cpus = { { 0 } };

		cpus_add(&cpus, worker->cpu);
		err = cpus_set_affinity(0, &cpus);
	}
	if (!err) {
		worker->failed_at = "set the scheduling policy";
		err = set_policy(worker);
	}
	return err;
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;

	worker->error = set_up(worker);
	gate_arrive(worker->gate);
	int64_t origin_ns = gate_pass(worker->gate);

	if (!worker->error && !word_load(&worker->stop))
		worker->error = run_probe(worker, origin_ns);
	word_store(&worker->done, 1);
	while (write(worker->gate->done_fd, "", 1) < 0 && errno == EINTR)
		;
	return NULL;
}

int worker_start(struct worker *worker)
{
	sigset_t most, before;

	/* Signals are the main thread's; only the one that ends a wait and the budget's may come here. */
	sigfillset(&most);
	sigdelset(&most, WORKER_STOP_SIGNAL);
	sigdelset(&most, SIGXCPU);
	pthread_sigmask(SIG_SETMASK, &most, &before);
	int err = thread_start(&worker->thread, worker_main, worker);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

void worker_wake(int tid)
{
	syscall(SYS_tgkill, getpid(), tid, WORKER_STOP_SIGNAL);
}

void worker_stop(struct worker *worker)
{
	word_store(&worker->stop, 1);
	if (word_load(&worker->task)) /* it stepped back for another, and has to bring in the harvest now */
		sys_set_policy(worker->tid, (int)worker->policy, worker->priority);
	if (!word_load(&worker->done) && worker->tid)
		worker_wake(worker->tid);
	if (word_load(&worker->helper))
		worker_wake((int)word_load(&worker->helper));
}
