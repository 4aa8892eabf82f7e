/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/PID/stat: this thread's, and some made up. */
#include "sys.h"

#include "taskstat.h"

#include "check.h"

#include <string.h>

static struct taskstat stat;

static void a_thread_is_told_by_the_words_behind_its_name(void)
{
	CHECK(taskstat_parse("62 (irq/24-ACPI:Ged) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 -7 1 0 70 0 0 18446744073709551615 0 0 0 0 0 "
			     "0 0 2147483647 0 0 0 0 17 3 50 1 0 0 0 0 0\n", &stat));
	CHECK(!strcmp(stat.name, "irq/24-ACPI:Ged") && stat.of_kernel);
	CHECK(stat.priority == 50 && stat.policy == 1 && stat.cpu == 3 && stat.nice == -7);
}

static void a_name_may_be_anything(void)
{
	CHECK(taskstat_parse("7 (a) R 1 (b c) S 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 19 1 0 70 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 3\n",
			     &stat));
	CHECK(!strcmp(stat.name, "a) R 1 (b c") && !stat.of_kernel);
	CHECK(stat.priority == 0 && stat.policy == 3 && stat.cpu == 2 && stat.nice == 19);
}

static void what_is_no_such_line_is_refused(void)
{
	CHECK(!taskstat_parse("", &stat) && !taskstat_parse("7 (name", &stat) && !taskstat_parse(")(", &stat));
	CHECK(!taskstat_parse("7 (name) S 1 2 3", &stat));
}

static void this_thread_is_where_it_is(void)
{
	CHECK(taskstat_read("/proc/self/stat", &stat) == 0);
	CHECK(!strncmp(stat.name, "test_taskstat", 13) && !stat.of_kernel && stat.cpu >= 0);
	CHECK(taskstat_read("/proc/0/stat", &stat) == -ENOENT);
	CHECK(taskstat_read("/proc/version", &stat) == -EPROTO);
}

int main(void)
{
	a_thread_is_told_by_the_words_behind_its_name();
	a_name_may_be_anything();
	what_is_no_such_line_is_refused();
	this_thread_is_where_it_is();
	return EXIT_SUCCESS;
}
