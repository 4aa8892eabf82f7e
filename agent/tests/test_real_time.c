/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets of made-up control groups in a folder of files. */
#include "system/sys.h"

#include "facts/real_time.h"

#include "scratch.h"

#include <string.h>
#include <sys/stat.h>

static char top[300], inner[340];

static void put_file(const char *folder, const char *name, const char *content)
{
	char path[400];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (!content) {
		unlink(path);
		return;
	}
	file = fopen(path, "w");
	CHECK(file && fputs(content, file) >= 0 && fclose(file) == 0);
}

static void put_budgets(bool there)
{
	put_file(top, "cpu.rt_runtime_us", there ? "950000\n" : NULL);
	put_file(top, "cpu.rt_period_us", there ? "1000000\n" : NULL);
	put_file(inner, "cpu.rt_runtime_us", there ? "0\n" : NULL);
	put_file(inner, "cpu.rt_period_us", there ? "500000\n" : NULL);
}

/* What is found for such a group; lines ends with a zero. */
static int budgets_of(const char *options, const char *group, struct bytes *lines)
{
	char mounts[1024], groups[256];

	snprintf(mounts, sizeof(mounts), "proc /proc proc rw 0 0\ncgroup /nowhere cgroup rw,cpuset 0 0\ncgroup %s cgroup %s 0 0\n", top,
		 options);
	snprintf(groups, sizeof(groups), "4:cpuset:/other\n2:cpu,cpuacct:%s\n0::/unified\n", group);
	lines->length = 0;
	int err = rt_budget_groups(mounts, groups, lines);

	put_u8(lines, 0);
	return err;
}

static void expect(const char *group, const char *expected)
{
	struct bytes lines = { 0 };

	CHECK(budgets_of("rw,relatime,cpu,cpuacct", group, &lines) == 0);
	CHECK(!strcmp((char *)lines.data, expected));
	bytes_free(&lines);
}

static void each_group_up_to_the_top_has_its_line(void)
{
	char expected[700];

	snprintf(expected, sizeof(expected), "%s 0 500000\n%s 950000 1000000\n", inner, top);
	expect("/inner", expected);
	expect("/inner/gone", expected); /* a group that can't be seen from here */
	snprintf(expected, sizeof(expected), "%s 950000 1000000\n", top);
	expect("/", expected);
}

static void without_the_controller_there_is_none(void)
{
	struct bytes lines = { 0 };

	CHECK(budgets_of("rw,relatime,cpuacct", "/inner", &lines) == -ENOENT);
	put_budgets(false);
	CHECK(budgets_of("rw,relatime,cpu,cpuacct", "/inner", &lines) == -ENOENT);
	bytes_free(&lines);
}

int main(void)
{
	(void)scratch_file();
	snprintf(top, sizeof(top), "%s/top", scratch_folder);
	snprintf(inner, sizeof(inner), "%s/inner", top);
	CHECK(mkdir(top, 0700) == 0 && mkdir(inner, 0700) == 0);
	put_budgets(true);
	each_group_up_to_the_top_has_its_line();
	without_the_controller_there_is_none();
	CHECK(rmdir(inner) == 0 && rmdir(top) == 0);
	return EXIT_SUCCESS;
}
