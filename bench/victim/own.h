/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VICTIM_OWN_H
#define VICTIM_OWN_H

#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define VIRTUAL_LOOPS_OF_MS 180000 /* an instruction is a nanosecond, and a turn of the loop has five or six */
#define PAGES 100
#define PAGE_BYTES 4096
#define LATE 40 /* the real-time priority of the thread in waits.c, where a kind has no other */

/*
 * One way in which a thread makes itself late. again: before each time. asks: a thread or a process, the partner, is
 * asked to do its part; just before, or early_ns before, so that it has begun.
 */
struct kind {
	const char *name;
	void (*prepare)(void), (*be_late)(void), (*again)(void);
	int asks;
	int64_t early_ns;
	int fifo;
};

/*
 * What processes share. from_ns, to_ns: when the cause was at work; 0: the whole time. took_ns: how long the cause took
 * for certain, by the CPU time of who it was, or as long as it had to sleep; 0: the CPU time of the late thread.
 */
struct shared {
	sem_t asked, answered;
	int64_t from_ns, to_ns, took_ns;
};

/*
 * A thread that makes itself late in one of the ways that have a name. loops_of_ms: how many turns of the loop take a
 * millisecond, or 0 to measure that. 0, or 1 if it could not.
 */
int own(const char *name, long count, long loops_of_ms);

extern const struct kind wait_kinds[];
extern const size_t wait_kinds_count;
extern struct shared *shared;
extern int64_t begin_ns;
extern long loops;

int64_t time_ns(clockid_t clock), now_ns(void), delayed_ns(void);
void sleep_until(int64_t ns);
void compute_ms(int ms);
void be_fifo(int priority);
char *new_pages(size_t number);
void prepare_nothing(void);

#endif
