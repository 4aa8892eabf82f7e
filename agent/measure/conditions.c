/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "measure/conditions.h"

#include "system/threads.h"
#include "system/clock.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
	MEAN_MOST = 64,
	LOOK_NS = 50000000,  /* a check comes at least so often, on average */
	CHEAP_NS = 250,      /* what reading the CPU may cost at every activation, */
	CHEAP_SHARE = 200,   /* and this part of a period */
};

/*
 * The kernel keeps the number of a CPU in the limit of a segment, for its own vDSO (arch/x86/include/asm/segment.h). One
 * instruction reads it, on every x86-64 processor and without a system call.
 */
#ifdef __x86_64__
static inline int cpu_now(void)
{
	unsigned int limit = ~0U;

	__asm__ volatile("lsl %1, %0" : "+r"(limit) : "r"(0x7bU) : "cc");
	return (int)(limit & 0xfff);
}
#else
static inline int cpu_now(void)
{
	return sched_getcpu();
}
#endif

static int cpu_by_call(void)
{
	unsigned int cpu = 0;

	return syscall(SYS_getcpu, &cpu, (void *)0, (void *)0) == 0 ? (int)cpu : -1;
}

/* Whether the CPU can be read at every activation. A thread that moves meanwhile is tried again. */
static bool is_cheap(int64_t period_ns)
{
	int64_t least_ns = INT64_MAX;
	bool right = false;

	for (int i = 0; i < 16; i++) {
		int64_t before_ns = clock_now_ns();
		int cpu = cpu_now();
		int64_t cost_ns = clock_now_ns() - before_ns;

		right = right || (cpu >= 0 && cpu == cpu_by_call());
		if (cost_ns < least_ns)
			least_ns = cost_ns;
	}
	least_ns -= clock_cost_ns();
	return right && least_ns <= CHEAP_NS && least_ns * CHEAP_SHARE <= period_ns;
}

/* xorshift32 of Marsaglia; the state is never 0. */
uint32_t conditions_distance(uint32_t *state, uint32_t mean)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return 1 + *state % (2 * mean - 1);
}

/* Time that the thread waited for a CPU: the second word. -1: the kernel does not tell. */
static int64_t read_delay_ns(struct conditions *conditions)
{
	char text[96], *rest;
	ssize_t n = conditions->delay_fd < 0 ? -1 : pread(conditions->delay_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return -1;
	conditions->reads++;
	text[n] = '\0';
	bool ran = strtoull(text, &rest, 10) > 0; /* a kernel that does not count says 0 of everything */

	return ran ? (int64_t)strtoull(rest, NULL, 10) : -1;
}

static int64_t read_switches(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) < 0 ? -1 : usage.ru_nivcsw;
}

static void open_delay(struct conditions *conditions)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", sys_gettid());
	conditions->delay_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (conditions->delay_fd < 0) {
		conditions->delay_fd = -errno;
		return;
	}
	conditions->delay_before_ns = read_delay_ns(conditions); /* the kernel allocates memory at the first time */
	if (conditions->delay_before_ns >= 0)
		return;
	close(conditions->delay_fd);
	conditions->delay_fd = -ENODATA;
}

void conditions_open(struct conditions *conditions, bool measured, int64_t period_ns, uint32_t seed)
{
	int64_t mean = LOOK_NS / period_ns;

	conditions->delay_fd = -ENODATA;
	if (!measured)
		return;
	open_delay(conditions);
	conditions->every = is_cheap(period_ns);
	conditions->switches_before = read_switches();
	conditions->seed = conditions->state = seed ? seed : 1;
	mean = mean < 1 ? 1 : mean > MEAN_MOST ? MEAN_MOST : mean;
	conditions->left = conditions_distance(&conditions->state, (uint32_t)mean);
	conditions->reads = 0;
	word_store(&conditions->mean, (uint32_t)mean); /* last: the writer looks at nothing before */
}

void conditions_close(struct conditions *conditions)
{
	if (conditions->delay_fd >= 0 && conditions->mean)
		close(conditions->delay_fd);
}

static void grow(uint32_t *word, uint32_t by)
{
	word_store(word, *word + by);
}

/* A deviation beyond the first so many different ones is counted in the rows only. */
static void deviates(struct conditions *conditions, enum condition kind, int seen)
{
	uint32_t i = 0;

	for (; i < conditions->n_deviations; i++)
		if (conditions->deviations[i].kind == (uint32_t)kind && (int)conditions->deviations[i].seen == seen)
			break;
	if (i == DEVIATIONS_MOST)
		return;
	if (i < conditions->n_deviations) {
		grow(&conditions->deviations[i].count, 1);
		return;
	}
	conditions->deviations[i] = (struct deviation){ (uint32_t)kind, (uint32_t)seen, 1 };
	grow(&conditions->n_deviations, 1);
}

static void note_cpu(struct conditions *conditions, int cpu)
{
	grow(&conditions->now.noted, 1);
	if (conditions->cpu < 0 || cpu < 0 || cpu == conditions->cpu)
		return;
	grow(&conditions->now.elsewhere, 1);
	deviates(conditions, CONDITION_CPU, cpu);
}

static void check(struct conditions *conditions)
{
	int policy = sys_get_policy(0) & ~POLICY_RESET_ON_FORK, priority = sys_get_priority(0);
	int64_t switches = read_switches(), delay_ns = read_delay_ns(conditions);

	if (!conditions->every)
		note_cpu(conditions, cpu_by_call());
	grow(&conditions->now.checks, 1);
	if (policy != conditions->policy) {
		grow(&conditions->now.other_policy, 1);
		deviates(conditions, CONDITION_POLICY, policy);
	} else if (priority != conditions->priority) {
		grow(&conditions->now.other_priority, 1);
		deviates(conditions, CONDITION_PRIORITY, priority);
	}
	if (switches >= 0)
		grow(&conditions->now.switches, (uint32_t)(switches - conditions->switches_before));
	conditions->switches_before = switches;
	if (delay_ns < 0)
		return;
	/* What is less than a microsecond is kept for the next time. */
	int64_t gained_us = (delay_ns - conditions->delay_before_ns) / 1000;

	grow(&conditions->now.delay_us, (uint32_t)gained_us);
	conditions->delay_before_ns += gained_us * 1000;
}

void conditions_note(struct conditions *conditions)
{
	if (!conditions->mean)
		return;
	if (conditions->every)
		note_cpu(conditions, cpu_now());
	if (--conditions->left)
		return;
	check(conditions);
	conditions->left = conditions_distance(&conditions->state, conditions->mean);
}

void conditions_look(struct conditions_log *log, int cpu, const struct cpus *affinity)
{
	if (!log->has_affinity) {
		if (cpu >= 0)
			cpus_add(&log->affinity, cpu);
		else
			log->affinity = *affinity;
		log->has_affinity = true;
	}
	if (!memcmp(&log->affinity, affinity, sizeof(*affinity)))
		return;
	log->affinities++;
	log->affinities_unwritten++;
	log->other = *affinity;
}

/* The thread goes on between two readings: what is part of another number waits for the next row rather than be more than that. */
static uint32_t part_of(uint32_t part, uint32_t part_before, uint32_t whole)
{
	return part - part_before > whole ? part_before + whole : part;
}

void conditions_row(struct conditions_log *log, const struct conditions *conditions, int64_t time_ns)
{
	const struct noted *before = &log->before;
	struct noted now;

	if (!word_load(&conditions->mean))
		return;

	now.other_priority = word_load(&conditions->now.other_priority);
	now.other_policy = word_load(&conditions->now.other_policy);
	now.checks = word_load(&conditions->now.checks);
	now.elsewhere = word_load(&conditions->now.elsewhere);
	now.noted = word_load(&conditions->now.noted);
	now.delay_us = word_load(&conditions->now.delay_us);
	now.switches = word_load(&conditions->now.switches);
	now.elsewhere = part_of(now.elsewhere, before->elsewhere, now.noted - before->noted);
	now.other_policy = part_of(now.other_policy, before->other_policy, now.checks - before->checks);
	now.other_priority = part_of(now.other_priority, before->other_priority, now.checks - before->checks);
	int64_t time_ms = time_ns < 0 ? 0 : time_ns / 1000000;
	const uint64_t row[] = {
		(uint64_t)(time_ms - (log->rows ? log->time_ms : 0)), now.noted - before->noted, now.elsewhere - before->elsewhere,
		now.checks - before->checks, now.other_policy - before->other_policy, now.other_priority - before->other_priority,
		log->affinities, now.delay_us - before->delay_us, now.switches - before->switches,
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		put_varint(&log->bytes, row[i]);
	log->time_ms = time_ms;
	log->before = now;
	log->affinities = 0;
	log->rows++;
}

static void put_deviation(struct bytes *chunk, enum condition kind, uint32_t count, const char *seen)
{
	put_u8(chunk, (uint8_t)kind);
	put_u32(chunk, count);
	put_string(chunk, seen);
}

void conditions_write(struct conditions_log *log, const struct conditions *conditions, int thread, struct record *record)
{
	uint32_t n = word_load(&conditions->n_deviations), gained[DEVIATIONS_MOST] = { 0 };
	bool affinity = log->affinities_unwritten > 0;
	char text[CPUS_TEXT];
	uint16_t seen = affinity;

	if (!log->rows)
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t count = word_load(&conditions->deviations[i].count);

		gained[i] = count - log->counts[i];
		log->counts[i] = count;
		seen += gained[i] > 0;
	}
	struct bytes *chunk = chunk_begin(record, CHUNK_CONDITIONS);

	put_u16(chunk, (uint16_t)thread);
	put_u16(chunk, seen);
	put_u32(chunk, log->rows);
	for (uint32_t i = 0; i < n; i++) {
		const struct deviation *one = &conditions->deviations[i];

		if (one->kind == CONDITION_POLICY)
			snprintf(text, sizeof(text), "%s", policy_name((int)one->seen));
		else
			snprintf(text, sizeof(text), "%d", (int)one->seen);
		if (gained[i])
			put_deviation(chunk, (enum condition)one->kind, gained[i], text);
	}
	if (affinity) {
		cpus_format(&log->other, text, sizeof(text));
		put_deviation(chunk, CONDITION_AFFINITY, log->affinities_unwritten, text);
	}
	chunk->failed |= log->bytes.failed;
	put_bytes(chunk, log->bytes.data, log->bytes.length);
	log->bytes.length = 0;
	log->rows = log->affinities_unwritten = 0;
	chunk_end(record);
}
