/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/app/work.h"

#include "system/clock.h"
#include "system/folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[WORK_UNITS] = { "outputs", "sensor", "usleep", "sieve", "memory", "lock", "busy" };

/* What the unit `lock` goes through: one for all threads, so that they wait for each other. */
static struct {
	pthread_mutex_t mutex;
	pthread_once_t once;
	volatile uint32_t words[256];
} shared = { .once = PTHREAD_ONCE_INIT };

static int unit_of(const char *name, size_t length)
{
	for (int i = 0; i < WORK_UNITS; i++)
		if (strlen(names[i]) == length && !strncmp(names[i], name, length))
			return i;
	return -1;
}

int work_units(const char *text, uint32_t *units, char *why, size_t room)
{
	*units = 0;
	if (!strcmp(text, "none"))
		return 0;
	for (const char *name = text;; name++) {
		size_t length = strcspn(name, "+");
		int unit = unit_of(name, length);

		if (unit < 0) {
			snprintf(why, room, "there is no work '%.*s': work= takes none, or some of outputs, sensor, usleep, sieve, "
				 "memory, lock and busy joined by +", (int)(length < 40 ? length : 40), name);
			return -EINVAL;
		}
		*units |= 1u << unit;
		name += length;
		if (!*name)
			return 0;
	}
}

const char *work_name(enum work_unit unit)
{
	return names[unit];
}

bool work_has(const struct work_order *order, enum work_unit unit)
{
	return order->units >> unit & 1;
}

static size_t sieve_bytes(const struct work_order *order)
{
	return work_has(order, WORK_SIEVE) ? (size_t)order->sieve_to + 1 : 0;
}

static size_t memory_bytes(const struct work_order *order)
{
	return work_has(order, WORK_MEMORY) ? (size_t)order->memory_kib * 1024 : 0;
}

/* Touched and locked memory that is not there ends in the kernel's out-of-memory killer. */
static int check_memory(const struct work_order *order, char *why, size_t room)
{
	/* As numbers that can't wrap: a 32-bit address space may be smaller than what is asked for, and than what is free. */
	double needed = (double)sieve_bytes(order) + (work_has(order, WORK_MEMORY) ? (double)order->memory_kib * 1024 : 0);
	double there = (double)memory_room();

	if (there > (double)SIZE_MAX / 2)
		there = (double)SIZE_MAX / 2;
	if (needed <= there / 2)
		return 0;
	snprintf(why, room, "the work needs %.1f MB for each thread, more than half of the %.1f MB that are free: give a smaller "
		 "sieve_to= or memory_kib=", needed / 1e6, there / 1e6);
	return -ENOMEM;
}

static int read_sensor(struct work *work)
{
	if (lseek(work->sensor_fd, 0, SEEK_SET) < 0)
		return -errno;
	ssize_t n = read(work->sensor_fd, work->sensed, SENSOR_TEXT - 1);

	if (n > 0)
		work->sensed[n] = '\0';
	return n < 0 ? -errno : n ? 0 : -ENODATA;
}

static int say_sensor(const struct work *work, int err, bool first, char *why, size_t room)
{
	if (err)
		snprintf(why, room, "the sensor's file '%s' can't be read%s: %s%s", work->order.sensor, first ? "" : " any more",
			 strerror(-err), first ? "; say which with sensor=PATH" : "");
	return err;
}

static int open_sensor(struct work *work, char *why, size_t room)
{
	work->sensor_fd = -1;
	if (!work_has(&work->order, WORK_SENSOR))
		return 0;
	/* Without waiting: for the writer of a pipe that would be for ever. */
	work->sensor_fd = open(work->order.sensor, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return say_sensor(work, work->sensor_fd < 0 ? -errno : read_sensor(work), true, why, room);
}

int work_look(const struct work_order *order, char *why, size_t room)
{
	struct work work = { .order = *order };
	int err = check_memory(order, why, room);

	if (!err)
		err = open_sensor(&work, why, room);
	if (!err && work.sensor_fd >= 0)
		close(work.sensor_fd);
	return err;
}

static void make_mutex(void)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	if (pthread_mutex_init(&shared.mutex, &attributes)) /* kernels without CONFIG_FUTEX_PI */
		pthread_mutex_init(&shared.mutex, NULL);
	pthread_mutexattr_destroy(&attributes);
}

/* Every page is written to, unless the first pass shall do that. */
static int get_memory(uint8_t **memory, size_t bytes, bool untouched)
{
	*memory = bytes ? malloc(bytes) : NULL;
	if (bytes && !*memory)
		return -ENOMEM;
	for (size_t i = 0; i < bytes && !untouched; i += CACHE_LINE)
		((volatile uint8_t *)*memory)[i] = 1;
	return 0;
}

int work_open(struct work *work, const struct work_order *order, char *why, size_t room)
{
	memset(work, 0, sizeof(*work));
	work->order = *order;
	int err = open_sensor(work, why, room);

	if (!err)
		err = check_memory(order, why, room);
	if (err)
		return err;
	err = get_memory(&work->composite, sieve_bytes(order), order->untouched);
	if (!err)
		err = get_memory(&work->memory, memory_bytes(order), order->untouched);
	if (err)
		snprintf(why, room, "there is no memory for the work: %s", strerror(-err));
	pthread_once(&shared.once, make_mutex);
	return err;
}

/* Aligned, so that the inner loop lies in the cache's lines alike in every program: else it is up to 5 % slower in one of them. */
__attribute__((aligned(64))) uint32_t sieve(uint8_t *composite, uint32_t to)
{
	uint32_t primes = 0;

	memset(composite, 0, (size_t)to + 1);
	for (uint32_t i = 2; i <= to; i++) {
		if (composite[i])
			continue;
		primes++;
		for (uint32_t j = i < 65536 ? i * i : to + 1; j <= to; j += i)
			composite[j] = 1;
	}
	return primes;
}

static void walk(uint8_t *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += CACHE_LINE)
		((volatile uint8_t *)memory)[i]++;
}

static void pass_lock(void)
{
	pthread_mutex_lock(&shared.mutex);
	for (size_t i = 0; i < sizeof(shared.words) / sizeof(*shared.words); i++)
		shared.words[i]++;
	pthread_mutex_unlock(&shared.mutex);
}

static void spin(int64_t us)
{
	int64_t end_ns = clock_now_ns() + us * 1000;

	while (clock_now_ns() < end_ns)
		;
}

int work_do(struct work *work, bool counts, char *why, size_t room)
{
	const struct work_order *order = &work->order;
	int err = work_has(order, WORK_SENSOR) ? say_sensor(work, read_sensor(work), false, why, room) : 0;

	if (work_has(order, WORK_USLEEP))
		sys_sleep(CLOCK_MONOTONIC, 0, order->usleep_us * 1000);
	if (work_has(order, WORK_SIEVE))
		work->primes = sieve(work->composite, (uint32_t)order->sieve_to);
	if (work_has(order, WORK_MEMORY))
		walk(work->memory, memory_bytes(order));
	if (work_has(order, WORK_LOCK))
		pass_lock();
	if (work_has(order, WORK_BUSY) && counts && ++work->spun % order->busy_every == 0)
		spin(order->busy_us);
	return err;
}

void work_close(struct work *work)
{
	if (work->sensor_fd >= 0)
		close(work->sensor_fd);
	free(work->composite);
	free(work->memory);
	work->sensor_fd = -1;
	work->composite = work->memory = NULL;
}
