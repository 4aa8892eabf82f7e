/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/smi.h"

#include "system/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { MSR_SMI_COUNT = 0x34, CPUINFO_READ = 1024 };

/* The first lines of the file tell; of other makers the same number is another register. */
static bool is_intel(const char *cpuinfo)
{
	char text[CPUINFO_READ + 1];
	int n = text_read_file(cpuinfo, text, CPUINFO_READ);

	text[n < 0 ? 0 : n] = '\0';
	return strstr(text, "GenuineIntel");
}

int64_t smi_read(const struct smi_counts *smi, int place)
{
	uint64_t value;

	if (place >= smi->n || smi->fds[place] < 0 ||
	    pread(smi->fds[place], &value, sizeof(value), MSR_SMI_COUNT) != (ssize_t)sizeof(value))
		return -1;
	return (int64_t)(value & UINT32_MAX); /* the upper half is reserved */
}

int smi_open(struct smi_counts *smi, const char *folder, const char *cpuinfo, const int *cpus, int n, char *why, size_t room)
{
	char path[128];

	smi->n = 0;
	if (!is_intel(cpuinfo))
		return text_refuse(why, room, -ENODEV, "only CPUs of Intel have this counter");
	for (int i = 0; i < n && i < SMI_CPUS; i++) {
		snprintf(path, sizeof(path), "%s/%d/msr", folder, cpus[i]);
		smi->fds[i] = open(path, O_RDONLY | O_CLOEXEC);
		int err = smi->fds[i] < 0 ? -errno : 0;

		smi->n = i + 1;
		if (!err && smi_read(smi, i) < 0)
			err = -EIO;
		if (!err)
			continue;
		smi_close(smi);
		if (err == -ENOENT || err == -ENXIO)
			return text_refuse(why, room, err, "there is no %s (the kernel's module msr is not loaded)", path);
		if (err == -EIO)
			return text_refuse(why, room, err, "%s: this CPU does not have the counter", path);
		return text_refuse(why, room, err, "%s: %s", path, strerror(-err));
	}
	return 0;
}

void smi_close(struct smi_counts *smi)
{
	for (int i = 0; i < smi->n; i++)
		if (smi->fds[i] >= 0)
			close(smi->fds[i]);
	smi->n = 0;
}
