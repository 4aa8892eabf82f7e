/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/automounts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>

#ifndef O_PATH
#define O_PATH 010000000
#endif

enum { AUTOFS = 0x0187, DEBUGFS = 0x64626720 };

/*
 * Where the table of paths may meet one, outer folders first. systemd mounts the boot partitions so. debugfs mounts tracefs in itself since
 * Linux 4.1, which has a place of its own then; unless: that place. Before, the folder is one of debugfs.
 */
static const struct {
	const char *folder, *unless;
	uint32_t type;
} places[] = {
	{ "/boot", NULL, AUTOFS },
	{ "/boot/efi", NULL, AUTOFS },
	{ "/boot/firmware", NULL, AUTOFS },
	{ "/efi", NULL, AUTOFS },
	{ "/sys/kernel/debug/tracing", "/sys/kernel/tracing", DEBUGFS },
};

/* See open(2), O_PATH: it is the way to look at such a folder without a mount. */
static bool is_of_type(const char *folder, uint32_t type)
{
	struct statfs status;
	int fd = open(folder, O_PATH | O_CLOEXEC);
	bool same = fd >= 0 && fstatfs(fd, &status) == 0 && (uint32_t)status.f_type == type;

	if (fd >= 0)
		close(fd);
	return same;
}

bool automounts_wait(const char *path)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		size_t length = strlen(places[i].folder);

		if (strncmp(path, places[i].folder, length) != 0 || path[length] != '/')
			continue;
		if (is_of_type(places[i].folder, places[i].type) && (!places[i].unless || access(places[i].unless, F_OK) == 0))
			return true;
	}
	return false;
}
