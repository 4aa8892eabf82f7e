/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

int text_read_file(const char *path, char *buffer, size_t room)
{
	size_t length = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	while (length < room) {
		ssize_t n = read(fd, buffer + length, room - length);

		if (n < 0) {
			int err = -errno;

			close(fd);
			return err;
		}
		if (n == 0)
			break;
		length += (size_t)n;
	}
	close(fd);
	return (int)length;
}

int text_read_line(const char *path, char *buffer, size_t room)
{
	int length = text_read_file(path, buffer, room - 1);

	if (length < 0)
		return length;
	buffer[length] = '\0';
	buffer[strcspn(buffer, "\n")] = '\0';
	return 0;
}

int text_duration_ns(const char *text, int64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
		{ "ns", 1 },    { "us", 1e3 },   { "ms", 1e6 },     { "s", 1e9 },
		{ "min", 6e10 }, { "h", 3.6e12 }, { "day", 8.64e13 }, { "d", 8.64e13 },
	};
	char *unit;
	double number = strtod(text, &unit);

	if (unit == text || !(number >= 0))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(unit, units[i].name))
			continue;
		if (number * units[i].ns >= 9e18)
			return -EINVAL;
		*ns = (int64_t)(number * units[i].ns + 0.5);
		return 0;
	}
	return -EINVAL;
}

int text_number(const char *text, int64_t least, int64_t most, int64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoll(text, &end, 10);
	return errno || end == text || *end || *value < least || *value > most ? -EINVAL : 0;
}
