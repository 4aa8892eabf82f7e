/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VICTIM_OWN_H
#define VICTIM_OWN_H

#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

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

/* What processes share. from_ns, to_ns: when the cause was at work; 0: the whole time. */
struct shared {
	sem_t asked, answered;
	int64_t from_ns, to_ns;
};

/* A thread that makes itself late in one of the ways that have a name. 0, or 1 if it could not. */
int own(const char *name, long count);

extern const struct kind wait_kinds[];
extern const size_t wait_kinds_count;
extern struct shared *shared;
extern int64_t begin_ns;

int64_t time_ns(clockid_t clock), now_ns(void);
void sleep_until(int64_t ns);
void compute_ms(int ms);
void be_fifo(int priority);
char *new_pages(size_t number);
void prepare_nothing(void);

#endif
