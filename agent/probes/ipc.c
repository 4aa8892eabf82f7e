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
#include "../sys.h"

#include "../clock.h"
#include "../probe.h"
#include "../stimulus.h"
#include "../threads.h"
#include "../undo.h"
#include "../worker.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/sem.h>

enum { SENDER }; /* the option */
enum turn { SENDERS, RECEIVERS };

/* How often in a period the sender looks whether a late answer has come, and how long both wait to see each other end. */
enum { LOOKS = 16, ACCOUNT_MOST = 384 };

#define PAUSE_NS 1000000

struct exchange;

/* One way to wake. wait() ends with the post that was or will be made, or with -EINTR. */
struct channel {
	struct method method;
	int (*open)(struct exchange *exchange);
	int (*post)(struct exchange *exchange);
	int (*wait)(struct exchange *exchange);
	void (*close)(struct exchange *exchange);
};

struct exchange {
	const struct channel *channel;
	struct worker *worker;
	uint32_t turn; /* whose the stimulus is */
	struct stimulus stimulus;
	uint32_t left;  /* the receiver will take no more */
	uint32_t error; /* why a post failed */

	pthread_t sender;
	bool sends;
	struct cpus cpus; /* of the sender; empty: the receiver's */
	sem_t ready;
	int refused; /* what the sender was refused, before it is ready */
	int policy, priority, cpu;
	int64_t latest_ns; /* how late the sender was at most */
	uint64_t skipped;  /* due times at which it was a period late */

	/* The channel's. */
	int ids[2];
	struct undo undo;
	pthread_mutex_t mutex;
	pthread_cond_t posted;
	sem_t semaphore;
	sigset_t signals;
};

static int open_nothing(struct exchange *exchange)
{
	(void)exchange;
	return 0;
}

static void close_nothing(struct exchange *exchange)
{
	(void)exchange;
}

static bool is_posted(const struct exchange *exchange)
{
	return word_load(&exchange->turn) == RECEIVERS;
}

static int post_futex(struct exchange *exchange)
{
	return sys_result(syscall(SYS_FUTEX, &exchange->turn, SYS_FUTEX_WAKE, 1, (void *)0, (void *)0, 0));
}

static int wait_futex(struct exchange *exchange)
{
	int err = 0;

	while (!is_posted(exchange) && err != -EINTR)
		err = sys_result(syscall(SYS_FUTEX, &exchange->turn, SYS_FUTEX_WAIT, SENDERS, (void *)0, (void *)0, 0));
	return is_posted(exchange) ? 0 : err;
}

static int open_cond(struct exchange *exchange)
{
	pthread_mutex_init(&exchange->mutex, NULL);
	return -pthread_cond_init(&exchange->posted, NULL);
}

static int post_cond(struct exchange *exchange)
{
	pthread_mutex_lock(&exchange->mutex); /* or it would come between the receiver's look and its sleep */
	pthread_mutex_unlock(&exchange->mutex);
	return -pthread_cond_signal(&exchange->posted);
}

/* No signal ends this wait; the sender does when the thread shall stop. */
static int wait_cond(struct exchange *exchange)
{
	pthread_mutex_lock(&exchange->mutex);
	while (!is_posted(exchange) && !word_load(&exchange->worker->stop))
		pthread_cond_wait(&exchange->posted, &exchange->mutex);
	pthread_mutex_unlock(&exchange->mutex);
	return is_posted(exchange) ? 0 : -EINTR;
}

static void close_cond(struct exchange *exchange)
{
	pthread_cond_destroy(&exchange->posted);
}

static int open_sem(struct exchange *exchange)
{
	return sem_init(&exchange->semaphore, 0, 0) < 0 ? -errno : 0;
}

static int post_sem(struct exchange *exchange)
{
	return sem_post(&exchange->semaphore) < 0 ? -errno : 0;
}

static int wait_sem(struct exchange *exchange)
{
	return sem_wait(&exchange->semaphore) < 0 ? -errno : 0;
}

static int open_signal(struct exchange *exchange)
{
	sigemptyset(&exchange->signals);
	sigaddset(&exchange->signals, SIGRTMIN);
	sigaddset(&exchange->signals, WORKER_STOP_SIGNAL);
	return -pthread_sigmask(SIG_BLOCK, &exchange->signals, NULL);
}

static int post_signal(struct exchange *exchange)
{
	return sys_result(syscall(SYS_tgkill, getpid(), exchange->worker->tid, SIGRTMIN));
}

static int wait_signal(struct exchange *exchange)
{
	siginfo_t info;
	int signal = sys_sigwait(&exchange->signals, &info);

	return signal == WORKER_STOP_SIGNAL ? -EINTR : signal < 0 ? signal : 0;
}

/* A number that nobody else is likely to have taken: threads of one process, and processes of one machine, have their own. */
static int own_number(const struct exchange *exchange)
{
	return (int)(0x52000000u | ((unsigned int)exchange->worker->tid & 0xffffffu));
}

/* A process apart that removes what it is told of. */
static int open_keeper(struct exchange *exchange)
{
	int err = undo_open(&exchange->undo);

	exchange->worker->failed_at = err ? "start the process that removes its kernel object" : "make its kernel object";
	return err;
}

static int open_mq(struct exchange *exchange)
{
	const long attributes[8] = { 0, 1, 1 }; /* flags, messages, bytes */
	char name[32];
	int err = open_keeper(exchange);

	snprintf(name, sizeof(name), "rtproof-%x", (unsigned int)own_number(exchange));
	if (!err)
		err = undo_queue(&exchange->undo, name);
	if (err)
		return err;
	exchange->ids[0] = sys_result(syscall(SYS_mq_open, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, attributes));
	if (exchange->ids[0] < 0)
		return exchange->ids[0];
	syscall(SYS_mq_unlink, name); /* it stays as long as it is open */
	return 0;
}

static int post_mq(struct exchange *exchange)
{
	return sys_result(syscall(SYS_MQ_SEND, exchange->ids[0], "", 1, 0, (void *)0));
}

static int wait_mq(struct exchange *exchange)
{
	char message;
	int n = sys_result(syscall(SYS_MQ_RECEIVE, exchange->ids[0], &message, 1, (void *)0, (void *)0));

	return n < 0 ? n : 0;
}

static const char *mq_unsupported(void)
{
	if (syscall(SYS_mq_unlink, "rtproof-there-is-none") < 0 && errno == ENOSYS)
		return "this kernel has no POSIX message queues (CONFIG_POSIX_MQUEUE)";
	return NULL;
}

static int open_sysv(struct exchange *exchange)
{
	key_t key = own_number(exchange);
	int err = open_keeper(exchange);

	if (!err && semget(key, 0, 0) >= 0)
		err = -EEXIST; /* somebody else's: not to be removed */
	if (!err)
		err = undo_semaphores(&exchange->undo, key);
	if (err)
		return err;
	exchange->ids[0] = semget(key, 1, IPC_CREAT | IPC_EXCL | 0600);
	return exchange->ids[0] < 0 ? -errno : 0;
}

static int change_sysv(const struct exchange *exchange, short by)
{
	struct sembuf operation = { .sem_op = by };

	return semop(exchange->ids[0], &operation, 1) < 0 ? -errno : 0;
}

static int post_sysv(struct exchange *exchange)
{
	return change_sysv(exchange, 1);
}

static int wait_sysv(struct exchange *exchange)
{
	return change_sysv(exchange, -1);
}

static const char *sysv_unsupported(void)
{
	if (semget(0x52000000, 0, 0) < 0 && errno == ENOSYS)
		return "this kernel has no System V semaphores (CONFIG_SYSVIPC)";
	return NULL;
}

static int open_pipe(struct exchange *exchange)
{
	return pipe2(exchange->ids, O_CLOEXEC) < 0 ? -errno : 0;
}

static int open_eventfd(struct exchange *exchange)
{
	exchange->ids[0] = eventfd(0, EFD_CLOEXEC);
	exchange->ids[1] = exchange->ids[0] < 0 ? -1 : fcntl(exchange->ids[0], F_DUPFD_CLOEXEC, 0);
	return exchange->ids[1] < 0 ? -errno : 0;
}

/* As many bytes as an eventfd wants. */
static int post_fd(struct exchange *exchange)
{
	const uint64_t one = 1;

	return write(exchange->ids[1], &one, sizeof(one)) < 0 ? -errno : 0;
}

static int wait_fd(struct exchange *exchange)
{
	uint64_t count;

	return read(exchange->ids[0], &count, sizeof(count)) < 0 ? -errno : 0;
}

static void close_fds(struct exchange *exchange)
{
	for (int i = 0; i < 2; i++)
		if (exchange->ids[i] >= 0)
			close(exchange->ids[i]);
}

static void close_object(struct exchange *exchange)
{
	undo_close(&exchange->undo);
}

static void close_mq(struct exchange *exchange)
{
	close_fds(exchange);
	close_object(exchange);
}

static const char *eventfd_unsupported(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0)
		return "this kernel has no eventfd (CONFIG_EVENTFD)";
	close(fd);
	return NULL;
}

#define METHOD(method_name, missing, text)                                                                  \
	{ .name = (method_name), .help = (text), .external = true, .no_timer = true, .no_deadline = true, \
	  .unsupported = (missing) }

static const struct channel futex = {
	METHOD("futex", NULL, "FUTEX_WAKE on a word, which everything of pthreads is made of"),
	open_nothing, post_futex, wait_futex, close_nothing,
};
static const struct channel cond = {
	METHOD("cond", NULL, "pthread_cond_signal()"),
	open_cond, post_cond, wait_cond, close_cond,
};
static const struct channel sem = {
	METHOD("sem", NULL, "POSIX semaphore: sem_post()"),
	open_sem, post_sem, wait_sem, close_nothing,
};
static const struct channel sysv = {
	METHOD("sysv", sysv_unsupported, "System V semaphore: semop(); as svsematest of rt-tests"),
	open_sysv, post_sysv, wait_sysv, close_object,
};
static const struct channel mq = {
	METHOD("mq", mq_unsupported, "POSIX message queue: mq_send(); as pmqtest of rt-tests"),
	open_mq, post_mq, wait_mq, close_mq,
};
static const struct channel signal_channel = {
	METHOD("signal", NULL, "a signal to the thread, taken by sigwaitinfo(); as sigwaittest of rt-tests"),
	open_signal, post_signal, wait_signal, close_nothing,
};
static const struct channel pipe_channel = {
	METHOD("pipe", NULL, "write() into a pipe"),
	open_pipe, post_fd, wait_fd, close_fds,
};
static const struct channel eventfd_channel = {
	METHOD("eventfd", eventfd_unsupported, "write() into an eventfd"),
	open_eventfd, post_fd, wait_fd, close_fds,
};

static const struct method *const methods[] = {
	&futex.method, &cond.method, &sem.method,          &sysv.method,
	&mq.method,    &signal_channel.method, &pipe_channel.method, &eventfd_channel.method, NULL,
};

static const struct probe_option options[] = {
	{ "sender", "the thread that wakes runs on the same CPU or on an other one: same, other (same)" },
	{ NULL, NULL },
};

static int ipc_check(const struct method *method, const char *const *values, int64_t period_ns, char *why, size_t room)
{
	bool other = values[SENDER] && !strcmp(values[SENDER], "other");
	struct cpus cpus;

	(void)method;
	(void)period_ns;
	if (values[SENDER] && !other && strcmp(values[SENDER], "same")) {
		snprintf(why, room, "sender= of probe ipc is same or other");
		return -EINVAL;
	}
	if (!other || cpus_get_affinity(0, &cpus) || cpus_count(&cpus) > 1)
		return 0;
	snprintf(why, room, "sender=other of probe ipc needs a second CPU");
	return -EINVAL;
}

/* The next one of those that this process may use. */
static int other_cpu(int cpu)
{
	struct cpus cpus;

	if (cpus_get_affinity(getpid(), &cpus)) /* the main thread's, which is bound to none */
		return cpu;
	for (int i = 0; i < cpus_count(&cpus); i++)
		if (cpus_nth(&cpus, i) > cpu)
			return cpus_nth(&cpus, i);
	return cpus_nth(&cpus, 0);
}

static void set_up_sender(struct exchange *exchange)
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

	set_up_sender(exchange);
	while (!word_load(&worker->stop) && !word_load(&exchange->left) && !word_load(&exchange->error))
		if (sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, look_ns) != -EINTR)
			look_ns = look(exchange);
	while (!word_load(&exchange->left)) {
		worker_wake(worker->tid);
		if (exchange->channel == &cond)
			post_cond(exchange);
		sys_sleep(CLOCK_MONOTONIC, 0, PAUSE_NS);
	}
	word_store(&worker->helper, 0);
	return NULL;
}

static int start_sender(struct exchange *exchange)
{
	struct worker *worker = exchange->worker;
	const char *where = worker->options[SENDER];
	int cpu = where && !strcmp(where, "other") ? other_cpu(worker->cpu) : -1;

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

static int ipc_open(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	if (!exchange)
		return -ENOMEM;
	worker->state = exchange;
	/* The method is the first member of its channel. */
	exchange->channel = (const struct channel *)(const void *)method;
	exchange->worker = worker;
	exchange->ids[0] = exchange->ids[1] = -1;
	exchange->stimulus = (struct stimulus){ .due_ns = first_due_ns, .period_ns = period_ns };
	int err = exchange->channel->open(exchange);

	return err ? err : start_sender(exchange);
}

static int ipc_take(struct worker *worker, struct activation *activation)
{
	struct exchange *exchange = worker->state;
	int err = exchange->channel->wait(exchange);
	int64_t now_ns = clock_now_ns(), given_ns;

	if (word_load(&exchange->error)) {
		worker->failed_at = "be woken";
		return -(int)word_load(&exchange->error);
	}
	if (err || !is_posted(exchange))
		return err ? err : -EINTR;
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
	word_store(&exchange->left, 1);
	for (uint32_t helper = word_load(&worker->helper); helper; helper = word_load(&worker->helper)) {
		worker_wake((int)helper);
		sys_sleep(CLOCK_MONOTONIC, 0, PAUSE_NS);
	}
	if (exchange->sends) {
		pthread_join(exchange->sender, NULL);
		leave_account(worker, exchange);
	}
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
	.open = ipc_open,
	.take = ipc_take,
	.pending = ipc_pending,
	.close = ipc_close,
};
