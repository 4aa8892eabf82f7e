/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ipc probe: one thread wakes another, in each of the ways that rt-tests spreads over ptsematest, svsematest, pmqtest,
 * sigwaittest and signaltest, and in those that came later. The measuring thread is the receiver. A thread of its own posts to it at
 * each due time and takes the clock just before, so that its own lateness is in no value.
 *
 * As in these tests the sender has the receiver's policy and priority and, unless told otherwise, its CPU: figures can be compared.
 * So on one CPU the sender's way to sleep, which lets the receiver run, is part of the value; with sender=other it is not, but
 * the other CPU's way out of idle is.
 */
#include "system/sys.h"

#include "system/clock.h"
#include "probes/ipc/sender.h"
#include "measure/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENDER }; /* the option */
enum { ACCOUNT_MOST = 384 };

static const struct method *const methods[] = {
	&channel_futex.method, &channel_cond.method,   &channel_sem.method,  &channel_sysv.method,
	&channel_mq.method,    &channel_signal.method, &channel_pipe.method, &channel_eventfd.method, NULL,
};

static const struct probe_option options[] = {
	{ "sender", "CPU of the thread that wakes the measuring one: same or other (same)" },
	{ NULL, NULL },
};

static int ipc_check(const struct method *method, const char *const *values, int64_t period_ns, char *why, size_t room)
{
	bool other = values[SENDER] && !strcmp(values[SENDER], "other");

	(void)method;
	(void)period_ns;
	if (values[SENDER] && !other && strcmp(values[SENDER], "same")) {
		snprintf(why, room, "sender= of probe ipc is same or other");
		return -EINVAL;
	}
	return 0;
}

static int ipc_check_cpus(const char *const *values, const struct cpus *usable, char *why, size_t room)
{
	if (!values[SENDER] || strcmp(values[SENDER], "other") || cpus_count(usable) > 1)
		return 0;
	snprintf(why, room, "sender=other of probe ipc needs a second CPU");
	return -EINVAL;
}

/* The next one of those that this process may use and those that are measured. */
static int other_cpu(int cpu, const struct cpus *measured)
{
	struct cpus cpus;

	if (cpus_get_affinity(getpid(), &cpus)) /* the main thread's, which is bound to none */
		return cpu;
	cpus_add_all(&cpus, measured);
	for (int i = 0; i < cpus_count(&cpus); i++)
		if (cpus_nth(&cpus, i) > cpu)
			return cpus_nth(&cpus, i);
	return cpus_nth(&cpus, 0);
}

/* A limit is told as one: what strerror() says of it is of something else. */
static int explain(const struct exchange *exchange, int err)
{
	const struct channel *channel = exchange->channel;

	if (channel->scarce && err == -channel->scarce_error)
		snprintf(exchange->worker->why, sizeof(exchange->worker->why), "%s", channel->scarce);
	return err;
}

static int ipc_open(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	const char *where = worker->options[SENDER];

	if (!exchange)
		return -ENOMEM;
	worker->state = exchange;
	/* The method is the first member of its channel. */
	exchange->channel = (const struct channel *)(const void *)method;
	exchange->worker = worker;
	exchange->ids[0] = exchange->ids[1] = -1;
	exchange->stimulus = (struct stimulus){ .due_ns = first_due_ns, .period_ns = period_ns };
	int err = explain(exchange, exchange->channel->open(exchange));

	return err ? err : sender_start(exchange, where && !strcmp(where, "other") ? other_cpu(worker->cpu, worker->cpus) : -1);
}

static int ipc_take(struct worker *worker, struct activation *activation)
{
	struct exchange *exchange = worker->state;
	int err = exchange->channel->wait(exchange);
	int64_t now_ns = clock_now_ns(), given_ns;

	if (word_load(&exchange->error))
		err = -(int)word_load(&exchange->error);
	if (err && err != -EINTR) {
		worker->failed_at = "be woken";
		return explain(exchange, err);
	}
	if (err || !is_posted(exchange))
		return -EINTR;
	given_ns = exchange->stimulus.given_ns;
	stimulus_end(&exchange->stimulus, now_ns - given_ns, true, activation);
	activation->due_ns = given_ns;
	activation->values[0] = now_ns - given_ns;
	word_store(&exchange->turn, SENDERS);
	return 0;
}

/* A post that has been made is answered. */
static bool ipc_pending(struct worker *worker)
{
	return worker->state && is_posted(worker->state);
}

static void leave_account(struct worker *worker, const struct exchange *exchange)
{
	struct probe_file *file = &worker->files[worker->n_files];
	const struct stimulus *stimulus = &exchange->stimulus;

	file->content = malloc(ACCOUNT_MOST);
	if (!file->content)
		return;
	snprintf(file->path, sizeof(file->path), "ipc/thread%d", worker->number);
	file->length = (size_t)snprintf(file->content, ACCOUNT_MOST,
		"sender_cpu %d\nsender_policy %s\nsender_priority %d\nposts %llu\nanswered %llu\nskipped %llu\n"
		"sender_latest_ns %lld\n",
		exchange->cpu, policy_name(exchange->policy), exchange->priority, (unsigned long long)stimulus->given,
		(unsigned long long)stimulus->answered, (unsigned long long)exchange->skipped, (long long)exchange->latest_ns);
	worker->n_files++;
}

static void ipc_close(struct worker *worker)
{
	struct exchange *exchange = worker->state;

	if (!exchange)
		return;
	sender_end(exchange);
	if (exchange->sends)
		leave_account(worker, exchange);
	if (exchange->channel->close)
		exchange->channel->close(exchange);
	free(exchange);
	worker->state = NULL;
}

const struct probe probe_ipc = {
	.name = "ipc",
	.help = "from one thread's post to another thread's first instruction",
	.field = "wake",
	.unit = "ns",
	.methods = methods,
	.options = options,
	.check = ipc_check,
	.check_cpus = ipc_check_cpus,
	.open = ipc_open,
	.take = ipc_take,
	.pending = ipc_pending,
	.close = ipc_close,
};
