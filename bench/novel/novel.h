/* SPDX-License-Identifier: Apache-2.0 */
/* What the disturbers share: novel.c with the first ten kinds and main(), further.c and third.c with ten more each. */
#ifndef NOVEL_H
#define NOVEL_H

#include <stdint.h>

#define PRIORITY 70
#define PAGE 4096
#define GROUP "/sys/fs/cgroup/novel"
#define HELPERS 3

struct activation {
	int64_t due, end, begin_of_cause, end_of_cause;
	long culprit;
};

extern struct activation *all; /* shared with the other processes */
extern long count;

int64_t now_ns(void);
void sleep_until(int64_t ns);
void spin_until(int64_t ns);
void must(int holds, const char *what);
void be_fifo(int priority);
int stay_on(int cpu);
void write_text(const char *path, const char *text);
void make_group(void); /* GROUP, without any controller */
int64_t due_of(long n);
/* The n-th activation has one of three lengths, below half a millisecond, when the probe beside it is due again. */
int64_t late_of(long n);
void began(long n);
void ended(long n);

/* A helper is a thread of the process, or a process of its own; priority 0 is an ordinary one.
   elsewhere: on the second CPU where there is one. */
struct helper {
	const char *name;
	void (*disturb)(long n);
	int priority, is_process, elsewhere;
};

/* prepare: once before the helpers are started. act: one activation of the real-time thread. */
struct kind {
	const char *name;
	void (*prepare)(void), (*act)(long n);
	struct helper helpers[HELPERS];
	int period_ms;
};

void prepare_nothing(void);
void only_wait(long n);

/* Three groups of software counters, of which none counts. leaders: their descriptors. thread: 0 for this one, -1 for all
   of that cpu; cpu: -1 for any. */
void start_counters(int leaders[3], int thread, int cpu);

extern const struct kind further_kinds[], third_kinds[]; /* the last one of each has no name */

#endif
