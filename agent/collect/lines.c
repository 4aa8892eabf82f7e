/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/lines.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { AT_ONCE = 1200, READ_STEP = 16384 };

void put_format(struct bytes *text, const char *format, ...)
{
	char line[AT_ONCE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	put_bytes(text, line, strlen(line));
}

static int copy_all(int fd, struct bytes *text, size_t most)
{
	char part[READ_STEP];
	size_t before = text->length;

	for (;;) {
		ssize_t n = read(fd, part, sizeof(part));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return text->failed ? -ENOMEM : 0;
		size_t room = most - (text->length - before);

		put_bytes(text, part, (size_t)n < room ? (size_t)n : room);
		if ((size_t)n > room)
			return TEXT_IS_CUT;
	}
}

int put_file(struct bytes *text, const char *path, size_t most)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	int err = copy_all(fd, text, most);

	close(fd);
	put_u8(text, 0);
	if (text->failed)
		return -ENOMEM;
	text->length--;
	return err;
}

char *next_line(char **text)
{
	char *line = *text, *end;

	if (!line || !*line)
		return NULL;
	end = line + strcspn(line, "\n");
	*text = *end ? end + 1 : end;
	*end = '\0';
	return line;
}
