/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/firmware.h"

#include "collect/lines.h"
#include "system/cpus.h"
#include "system/smi.h"
#include "system/text.h"

#include <string.h>

int collect_smi(struct bytes *text, int pid)
{
	struct smi_counts smi;
	struct cpus online;
	char list[CPUS_TEXT], why[160];
	int numbers[SMI_CPUS] = { 0 }, n = 0;

	(void)pid;
	if (text_read_line("/sys/devices/system/cpu/online", list, sizeof(list)) || cpus_parse(list, &online))
		return -ENOENT;
	while (n < SMI_CPUS && cpus_nth(&online, n) >= 0) {
		numbers[n] = cpus_nth(&online, n);
		n++;
	}
	int err = smi_open(&smi, "/dev/cpu", "/proc/cpuinfo", numbers, n, why, sizeof(why));

	if (err)
		return err;
	for (int i = 0; i < smi.n; i++)
		put_format(text, "cpu%d %lld\n", numbers[i], (long long)smi_read(&smi, i));
	smi_close(&smi);
	return n < cpus_count(&online) ? TEXT_IS_CUT : 0;
}

static void put_tree(struct bytes *text, const char *path, const char *word, const char *only)
{
	char value[128];

	if (!text_read_line(path, value, sizeof(value)) && *value && (!only || !strcmp(value, only)))
		put_format(text, "%s %s\n", word, value);
}

int collect_hypervisor(struct bytes *text, int pid)
{
	char name[13];

	(void)pid;
	sys_hypervisor_name(name);
	for (char *letter = name; *letter; letter++)
		if (*letter <= ' ' || *letter > '~')
			*letter = '_';
	if (*name)
		put_format(text, "cpuid %s\n", name);
	put_tree(text, "/proc/device-tree/hypervisor/compatible", "device-tree", NULL);
	put_tree(text, "/proc/device-tree/psci/method", "psci", "hvc"); /* firmware is asked through a hypervisor */
	if (!text->length)
		put_format(text, "none\n");
	return 0;
}
