/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "system/cpus.h"

#include <errno.h>
#include <string.h>

static void lists_are_read_and_written(void)
{
	const struct {
		const char *text, *back;
		int count, last;
	} good[] = {
		{ "0", "0", 1, 0 },
		{ "0-3,5", "0-3,5", 5, 5 },
		{ "5,3,4", "3-5", 3, 5 },
		{ "7-7", "7", 1, 7 },
		{ "1,1,1-2", "1-2", 2, 2 },
		{ "4095", "4095", 1, 4095 },
		{ "0-4095", "0-4095", 4096, 4095 },
		{ "31,32,63,64", "31-32,63-64", 4, 64 },
	};
	const char *const bad[] = { "", ",", "1,", ",1", "-1", "3-1", "1-", "a", "1 2", " 1", "1, 2", "4096", "+1", "0-4096", "1--2" };
	struct cpus cpus;
	char text[CPUS_TEXT];

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		CHECK(cpus_parse(good[i].text, &cpus) == 0);
		CHECK(cpus_count(&cpus) == good[i].count);
		CHECK(cpus_nth(&cpus, good[i].count - 1) == good[i].last && cpus_nth(&cpus, good[i].count) == -1);
		cpus_format(&cpus, text, sizeof(text));
		CHECK(!strcmp(text, good[i].back));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(cpus_parse(bad[i], &cpus) == -EINVAL);
}

static void members_come_and_go(void)
{
	struct cpus cpus = { { 0 } };

	CHECK(!cpus_has(&cpus, 0) && !cpus_has(&cpus, -1) && !cpus_has(&cpus, CPUS_MOST));
	for (int cpu = 0; cpu < CPUS_MOST; cpu += 37)
		cpus_add(&cpus, cpu);
	for (int cpu = 0; cpu < CPUS_MOST; cpu++)
		CHECK(cpus_has(&cpus, cpu) == (cpu % 37 == 0));
	for (int n = 0; n < 10; n++)
		CHECK(cpus_nth(&cpus, n) == 37 * n);
	cpus_remove(&cpus, 37);
	CHECK(!cpus_has(&cpus, 37) && cpus_nth(&cpus, 1) == 74);
}

static void a_list_that_does_not_fit_says_so(void)
{
	struct cpus cpus = { { 0 } };
	char text[CPUS_TEXT];

	for (int cpu = 0; cpu < CPUS_MOST; cpu += 2)
		cpus_add(&cpus, cpu);
	cpus_format(&cpus, text, sizeof(text));
	CHECK(strlen(text) < sizeof(text) && !strncmp(text, "0,2,4,", 6));
	CHECK(!strcmp(text + strlen(text) - 3, "..."));
}

static void the_kernel_takes_and_gives_affinity(void)
{
	struct cpus allowed, one = { { 0 } }, now, none = { { 0 } };

	CHECK(cpus_get_affinity(0, &allowed) == 0 && cpus_count(&allowed) > 0);
	cpus_add(&one, cpus_nth(&allowed, cpus_count(&allowed) - 1));
	CHECK(cpus_set_affinity(0, &one) == 0);
	CHECK(cpus_get_affinity(0, &now) == 0 && !memcmp(&now, &one, sizeof(one)));
	CHECK(cpus_set_affinity(0, &none) == -EINVAL);
	CHECK(cpus_set_affinity(0, &allowed) == 0);
}

/* A process may bind itself to a CPU that is not in its affinity, and has its affinity again after the trial. */
static void cpus_outside_of_the_affinity_are_reached(void)
{
	struct cpus allowed, first = { { 0 } }, asked = { { 0 } }, reached, now;

	CHECK(cpus_get_affinity(0, &allowed) == 0);
	cpus_add(&first, cpus_nth(&allowed, 0));
	CHECK(cpus_reach(&allowed, &first, &reached) == 0 && !memcmp(&reached, &allowed, sizeof(reached)));
	if (cpus_nth(&allowed, 1) < 0)
		return;
	CHECK(cpus_set_affinity(0, &first) == 0);
	cpus_add(&asked, cpus_nth(&allowed, 1));
	cpus_add(&asked, CPUS_MOST - 1);
	CHECK(cpus_reach(&first, &asked, &reached) == 0);
	CHECK(cpus_count(&reached) == 2 && cpus_has(&reached, cpus_nth(&allowed, 0)) && cpus_has(&reached, cpus_nth(&allowed, 1)));
	CHECK(cpus_get_affinity(0, &now) == 0 && !memcmp(&now, &first, sizeof(now)));
	CHECK(cpus_set_affinity(0, &allowed) == 0);
}

static void a_cpu_is_on_line_or_not(void)
{
	struct cpus allowed;

	CHECK(cpus_get_affinity(0, &allowed) == 0);
	CHECK(cpus_on_line(cpus_nth(&allowed, 0)) != 0);
	CHECK(cpus_on_line(CPUS_MOST - 1) != 1);
}

int main(void)
{
	cpus_outside_of_the_affinity_are_reached();
	a_cpu_is_on_line_or_not();
	lists_are_read_and_written();
	members_come_and_go();
	a_list_that_does_not_fit_says_so();
	the_kernel_takes_and_gives_affinity();
	return EXIT_SUCCESS;
}
