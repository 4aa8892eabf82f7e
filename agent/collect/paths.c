/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/paths.h"

/*
 * Never list here what waits or acts when it is read: /proc/kmsg, trace_pipe, /proc/kcore, reset, rescan, NVRAM. What `run` reads
 * for itself anyway stays in facts/files.c.
 */
const struct audit_path audit_paths[] = {
	/* What shows whether the rest can be seen at all. */
	{ "/proc/version", FILE_CONTENT },
	{ "/proc/cmdline", FILE_CONTENT },
	{ "/proc/cpuinfo", FILE_CONTENT },
	{ "/proc/mounts", FILE_CONTENT },
	{ "/proc/self/status", FILE_CONTENT },
	{ "/proc/sys/kernel/osrelease", FILE_CONTENT },
	{ "/sys/devices/system/cpu/online", FILE_CONTENT },

	/* kernel */
	{ "/proc/sys/kernel/tainted", FILE_CONTENT },

	/* boot */

	/* scheduler */

	/* application */

	/* isolation */

	/* power */

	/* clocks */

	/* memory */
	{ "/sys/kernel/mm/transparent_hugepage/enabled", FILE_CONTENT },

	/* console */

	/* services */

	/* hardware */

	{ 0, FILE_CONTENT },
};
