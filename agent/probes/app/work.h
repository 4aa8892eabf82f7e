/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a periodic application: units that combine, as article 3's test program has them. All memory is made and touched
 * when the work is opened; a pass allocates nothing.
 */
#ifndef RTPROOF_APP_WORK_H
#define RTPROOF_APP_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order in which a pass does them. WORK_OUTPUTS is done around the others, by whoever has the outputs. */
enum work_unit { WORK_OUTPUTS, WORK_SENSOR, WORK_USLEEP, WORK_SIEVE, WORK_MEMORY, WORK_LOCK, WORK_BUSY, WORK_UNITS };

enum { SENSOR_TEXT = 32, CACHE_LINE = 64 };

struct work_order {
	uint32_t units; /* bits 1 << enum work_unit */
	const char *sensor;
	int64_t usleep_us, sieve_to, memory_kib, busy_us, busy_every;
	bool untouched; /* memory is not touched beforehand: the first passes fault it in */
};

struct work {
	struct work_order order;
	int sensor_fd;
	char sensed[SENSOR_TEXT]; /* what the last reading of the sensor gave */
	uint8_t *composite, *memory;
	uint32_t primes; /* that the last sieve found */
	int64_t spun;    /* passes that may have been busy */
};

/* "none", or names of units joined by +. 0, or -EINVAL with a sentence in why. */
int work_units(const char *text, uint32_t *units, char *why, size_t room);
const char *work_name(enum work_unit unit);
bool work_has(const struct work_order *order, enum work_unit unit);

/* Whether the sensor can be read, and whether there is memory enough: 0, or a negative errno with a sentence in why. */
int work_look(const struct work_order *order, char *why, size_t room);

/* 0, or a negative errno with a sentence in why. work_close() is needed either way. */
int work_open(struct work *work, const struct work_order *order, char *why, size_t room);

/*
 * One pass of all units. counts: whether it counts towards busy_every. 0, or -errno with a sentence in why where the sensor can't be
 * read any more.
 */
int work_do(struct work *work, bool counts, char *why, size_t room);

void work_close(struct work *work);

/* How many primes there are from 2 to `to`, by one pass of the sieve of Eratosthenes over to + 1 bytes. */
uint32_t sieve(uint8_t *composite, uint32_t to);

#endif
