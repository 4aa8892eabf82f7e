/* SPDX-License-Identifier: GPL-2.0-only */
/* The test program of /dev/rtproof: runs in a guest as root, says PASS or FAIL for each check. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "../rtproof.h"

#define MS 1000000ull

struct check {
	const char *name;
	void (*run)(void);
};

extern const struct check mode_checks[], refusal_checks[], reader_checks[], life_checks[], gpio_checks[];

/* Notes that the running check failed; it goes on. */
void expect(bool holds, const char *what, const char *file, int line);
#define EXPECT(holds) expect(holds, #holds, __FILE__, __LINE__)
/* The running check cannot be made here. */
void skip(const char *why);

int figures(int count, char **arguments);

uint64_t now_ns(void);
/* 1 ms, CPU 0, first due time 3 ms ahead, FIFO 90 where there is a kernel task, every event on its own. */
struct rtproof_start usual(uint32_t mode);
/* Opens the device and starts it; ends the program if that fails. */
int started(const struct rtproof_start *start);
/* Reads exactly so many events, or fewer if the source ends before. */
int read_all(int device, struct rtproof_event *events, int count);
struct rtproof_summary summary_of(int device, uint32_t stage, uint64_t *bins);
/* errno of a call that returned so. */
int error_of(int result);
/* This thread gets that policy and priority. */
void become(int policy, int priority);
void spin_ns(uint64_t duration_ns);

#endif
