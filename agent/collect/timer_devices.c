/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/timer_devices.h"

#include <stdio.h>
#include <string.h>

int collect_timer_devices(struct bytes *text, int pid)
{
	static const char *const kept[] = { "Broadcast device", "Per CPU device", "Clock Event Device", "tick_broadcast" };
	FILE *list = fopen("/proc/timer_list", "re");
	char line[256];

	(void)pid;
	if (!list)
		return -errno;
	while (fgets(line, sizeof(line), list))
		for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
			if (!strncmp(line, kept[i], strlen(kept[i])))
				put_bytes(text, line, strlen(line));
	int err = ferror(list) ? -EIO : 0;

	fclose(list);
	return err;
}
