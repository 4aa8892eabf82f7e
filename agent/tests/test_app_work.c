/* SPDX-License-Identifier: Apache-2.0 */
/* What a pass of the application's work does, without looking at how long it takes. The loop is in tests/test_probe_app.py. */
#include "system/sys.h"

#include "probes/app/outputs.h"
#include "probes/app/work.h"
#include "system/clock.h"

#include "check.h"
#include "scratch.h"

#include <string.h>

static char why[256];
static struct work work;

static struct work_order order_of(const char *units)
{
	struct work_order order = { .sensor = "/dev/zero", .usleep_us = 1, .sieve_to = 1000, .memory_kib = 4, .busy_us = 1,
				    .busy_every = 1 };

	CHECK(work_units(units, &order.units, why, sizeof(why)) == 0);
	return order;
}

static void open_work(const struct work_order *order)
{
	CHECK(work_look(order, why, sizeof(why)) == 0);
	CHECK(work_open(&work, order, why, sizeof(why)) == 0);
}

static void names_are_joined_by_plus(void)
{
	uint32_t units;

	CHECK(work_units("none", &units, why, sizeof(why)) == 0 && units == 0);
	CHECK(work_units("sieve", &units, why, sizeof(why)) == 0 && units == 1u << WORK_SIEVE);
	CHECK(work_units("busy+outputs+lock", &units, why, sizeof(why)) == 0);
	CHECK(units == (1u << WORK_BUSY | 1u << WORK_OUTPUTS | 1u << WORK_LOCK));
	for (const char **wrong = (const char *[]){ "", "+", "sieve+", "siev", "sieves", "none+sieve", "Sieve", NULL }; *wrong; wrong++) {
		CHECK(work_units(*wrong, &units, why, sizeof(why)) == -EINVAL);
		CHECK(strstr(why, "there is no work '"));
	}
}

/* How many primes there are up to n: OEIS A006880, and small ones by hand. */
static void the_sieve_finds_all_primes(void)
{
	static const struct {
		uint32_t to, primes;
	} known[] = { { 2, 1 }, { 3, 2 }, { 4, 2 }, { 100, 25 }, { 10000, 1229 }, { 100000, 9592 }, { 1000000, 78498 } };
	static uint8_t composite[1000002];

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		composite[known[i].to + 1] = 77;
		CHECK(sieve(composite, known[i].to) == known[i].primes);
		CHECK(sieve(composite, known[i].to) == known[i].primes); /* and again over what it left */
		CHECK(composite[known[i].to + 1] == 77);
	}
}

static void a_pass_does_what_was_asked_and_no_more(void)
{
	struct work_order order = order_of("sieve+memory+lock");

	open_work(&order);
	CHECK(work_do(&work, true, why, sizeof(why)) == 0 && work_do(&work, true, why, sizeof(why)) == 0);
	CHECK(work.primes == 168 && work.sensor_fd < 0 && work.spun == 0);
	for (int i = 0; i < 4096; i++)
		CHECK(i % CACHE_LINE || work.memory[i] == 3); /* touched once, walked twice */
	work_close(&work);
	order = order_of("none");
	open_work(&order);
	CHECK(!work.composite && !work.memory && work_do(&work, true, why, sizeof(why)) == 0 && work.primes == 0);
	work_close(&work);
}

static void memory_is_left_alone_if_asked(void)
{
	struct work_order order = order_of("memory");

	order.untouched = true;
	open_work(&order);
	CHECK(work_do(&work, true, why, sizeof(why)) == 0);
	work_close(&work);
}

static void write_sensor(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void the_sensor_is_kept_open_and_read_from_its_beginning(void)
{
	struct work_order order = order_of("sensor");

	order.sensor = scratch_file();
	CHECK(work_look(&order, why, sizeof(why)) == -ENOENT && strstr(why, "can't be read: No such file or directory; say"));
	CHECK(work_open(&work, &order, why, sizeof(why)) == -ENOENT);
	work_close(&work);
	write_sensor(order.sensor, "41500\n");
	open_work(&order);
	CHECK(!strcmp(work.sensed, "41500\n"));
	write_sensor(order.sensor, "42\n");
	CHECK(work_do(&work, true, why, sizeof(why)) == 0 && !strcmp(work.sensed, "42\n"));
	CHECK(unlink(order.sensor) == 0); /* and what stands there by its name now is another */
	write_sensor(order.sensor, "43\n");
	CHECK(work_do(&work, true, why, sizeof(why)) == 0 && !strcmp(work.sensed, "42\n"));
	close(work.sensor_fd);
	CHECK(work_do(&work, true, why, sizeof(why)) == -EBADF && strstr(why, "can't be read any more: Bad file descriptor"));
	work.sensor_fd = -1;
	work_close(&work);
}

static void a_folder_is_no_sensor(void)
{
	struct work_order order = order_of("sensor");

	order.sensor = "/";
	CHECK(work_look(&order, why, sizeof(why)) == -EISDIR && strstr(why, "sensor's file '/'"));
}

/* Every third of those that count; the time is only looked at to see that it did something. */
static void busy_passes_come_every_so_often(void)
{
	struct work_order order = order_of("busy");

	order.busy_us = 20000;
	order.busy_every = 3;
	open_work(&order);
	for (int i = 1; i <= 7; i++) {
		int64_t before_ns = clock_now_ns();

		CHECK(work_do(&work, false, why, sizeof(why)) == 0 && work.spun == i - 1);
		CHECK(work_do(&work, true, why, sizeof(why)) == 0 && work.spun == i);
		CHECK(i % 3 || clock_now_ns() - before_ns >= 20000000);
	}
	work_close(&work);
}

static void memory_that_is_not_there_is_refused(void)
{
	struct work_order order = order_of("memory");

	order.memory_kib = INT64_MAX / 4096;
	CHECK(work_look(&order, why, sizeof(why)) == -ENOMEM && strstr(why, "give a smaller sieve_to= or memory_kib="));
	CHECK(work_open(&work, &order, why, sizeof(why)) == -ENOMEM);
	work_close(&work);
}

static void outputs_without_lines_count_their_pulses(void)
{
	const struct outputs_order order = { .wanted = true }, unwanted = { .wanted = false };
	struct outputs outputs = { .marks_fd = -1 };

	CHECK(outputs_look(&order, why, sizeof(why)) == 0 && outputs_open(&outputs, &order, why, sizeof(why)) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(outputs_set(&outputs, OUTPUT_SLEEP, true) == 0 && outputs_set(&outputs, OUTPUT_SLEEP, false) == 0);
	CHECK(outputs_set(&outputs, OUTPUT_WORK, true) == 0);
	CHECK(outputs.pulses[OUTPUT_SLEEP] == 3 && outputs.pulses[OUTPUT_WORK] == 1 && !outputs.pulses[OUTPUT_NO_SLEEP]);
	outputs_close(&outputs);
	CHECK(outputs_open(&outputs, &unwanted, why, sizeof(why)) == 0 && outputs_set(&outputs, OUTPUT_WORK, true) == 0);
	CHECK(outputs.pulses[OUTPUT_WORK] == 1);
	outputs_close(&outputs);
}

static void a_chip_that_is_not_there_is_refused(void)
{
	const struct outputs_order order = { .wanted = true, .lines = true, .chip = "no such chip", .line = { 1, 2, 3 } };
	struct outputs outputs = { .marks_fd = -1 };

	CHECK(outputs_look(&order, why, sizeof(why)) < 0 && strstr(why, "there is no GPIO chip 'no such chip'"));
	CHECK(outputs_open(&outputs, &order, why, sizeof(why)) < 0);
	outputs_close(&outputs);
}

int main(void)
{
	sys_init();
	clock_init();
	names_are_joined_by_plus();
	the_sieve_finds_all_primes();
	a_pass_does_what_was_asked_and_no_more();
	memory_is_left_alone_if_asked();
	the_sensor_is_kept_open_and_read_from_its_beginning();
	a_folder_is_no_sensor();
	busy_passes_come_every_so_often();
	memory_that_is_not_there_is_refused();
	outputs_without_lines_count_their_pulses();
	a_chip_that_is_not_there_is_refused();
	return EXIT_SUCCESS;
}
