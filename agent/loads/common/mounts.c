/* SPDX-License-Identifier: Apache-2.0 */
#include "loads/common/mounts.h"

#include <string.h>

static bool is_foreign(const char *type)
{
	static const char *const types[] = { "nfs", "cifs", "smb", "9p", "virtiofs", "fuse", "autofs", "ceph", "afs", "coda",
					     "gluster", "lustre", "gfs", "ocfs", "ncp" };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strncmp(type, types[i], strlen(types[i])))
			return true;
	return false;
}

/* /proc/mounts writes a space in a path as \040. */
static char *put_path(char *to, const char *from)
{
	while (*from)
		if (*from == '\\' && strlen(from) > 3) {
			*to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0');
			from += 4;
		} else {
			*to++ = *from++;
		}
	*to++ = '\0';
	return to;
}

void mounts_keep_foreign(char *mounts)
{
	char *to = mounts, *rest = NULL, *words;

	for (char *line = strtok_r(mounts, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		strtok_r(line, " ", &words);
		const char *path = strtok_r(NULL, " ", &words), *type = strtok_r(NULL, " ", &words);

		if (path && type && is_foreign(type))
			to = put_path(to, path);
	}
	*to = '\0';
}

bool mounts_hold(const char *list, const char *path)
{
	for (; *list; list += strlen(list) + 1)
		if (!strcmp(list, path))
			return true;
	return false;
}
