/* SPDX-License-Identifier: Apache-2.0 */
/* The counter of SMIs: read where it is, and a sentence for every reason why it can't be. */
#include "system/sys.h"

#include "system/smi.h"

#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char folder[64] = "/tmp/rtproof-smi-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[4][128];
	static int next;

	next = (next + 1) % 4;
	snprintf(path[next], sizeof(path[next]), "%s/%s", folder, name);
	return path[next];
}

static void write_at(const char *path, const void *content, size_t length, off_t at)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	CHECK(fd >= 0 && pwrite(fd, content, length, at) == (ssize_t)length && close(fd) == 0);
}

static void refused(const char *cpuinfo, int expected, const char *part)
{
	const int cpus[] = { 0, 3 };
	struct smi_counts smi;
	char why[160] = "";

	CHECK(smi_open(&smi, folder, cpuinfo, cpus, 2, why, sizeof(why)) == expected);
	CHECK(strstr(why, part) && smi.n == 0 && smi_read(&smi, 0) == -1);
}

int main(void)
{
	const uint64_t counts[] = { UINT64_C(0xdead00000007), 41 }, later = 42;
	const int cpus[] = { 0, 3 };
	struct smi_counts smi;
	char why[160] = "";

	CHECK(mkdtemp(folder));
	write_at(in_folder("amd"), "processor\t: 0\nvendor_id\t: AuthenticAMD\n", 39, 0);
	write_at(in_folder("intel"), "processor\t: 0\nvendor_id\t: GenuineIntel\n", 39, 0);
	refused(in_folder("amd"), -ENODEV, "only CPUs of Intel");
	refused(in_folder("nothing"), -ENODEV, "only CPUs of Intel");
	refused(in_folder("intel"), -ENOENT, "module msr is not loaded");

	CHECK(mkdir(in_folder("0"), 0700) == 0 && mkdir(in_folder("3"), 0700) == 0);
	write_at(in_folder("0/msr"), &counts[0], sizeof(counts[0]), 0x34);
	refused(in_folder("intel"), -ENOENT, "/3/msr");
	write_at(in_folder("3/msr"), "short", 5, 0);
	refused(in_folder("intel"), -EIO, "does not have the counter");

	write_at(in_folder("3/msr"), &counts[1], sizeof(counts[1]), 0x34);
	CHECK(smi_open(&smi, folder, in_folder("intel"), cpus, 2, why, sizeof(why)) == 0 && smi.n == 2);
	CHECK(smi_read(&smi, 0) == 7 && smi_read(&smi, 1) == 41 && smi_read(&smi, 2) == -1);
	write_at(in_folder("3/msr"), &later, sizeof(later), 0x34);
	CHECK(smi_read(&smi, 1) == 42);
	smi_close(&smi);
	CHECK(smi_read(&smi, 0) == -1);

	const char *const made[] = { "0/msr", "3/msr", "amd", "intel" };

	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
		CHECK(unlink(in_folder(made[i])) == 0);
	CHECK(rmdir(in_folder("0")) == 0 && rmdir(in_folder("3")) == 0 && rmdir(folder) == 0);
	return EXIT_SUCCESS;
}
