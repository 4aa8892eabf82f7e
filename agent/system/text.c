/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/text.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
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

bool text_has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || strchr(" \n", at[-1])) && strchr(" \n", at[length]))
			return true;
	return false;
}

static int write_value(const char *path, int flags, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		err = -errno;
	close(fd);
	return err;
}

int text_write_file(const char *path, const char *value)
{
	return write_value(path, O_TRUNC, value);
}

int text_append_file(const char *path, const char *value)
{
	return write_value(path, O_APPEND, value);
}

/* Nanoseconds in a unit, 0 if there is none of that name. */
static int64_t unit_ns(const char *name)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {
		{ "ns", 1 },           { "us", 1000 },         { "ms", 1000000 },        { "s", NS_PER_SECOND },
		{ "min", 60000000000 }, { "h", 3600000000000 }, { "d", 86400000000000 }, { "day", 86400000000000 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(units[i].name, name))
			return units[i].ns;
	return 0;
}

/* By hand: strtod() would be a tenth of the agent. What is worth less than a nanosecond does not count. */
int text_duration_ns(const char *text, int64_t *ns)
{
	const char *unit_name = text + strspn(text, "0123456789.");
	int64_t unit = unit_ns(unit_name), place = unit;
	bool fraction = false, digits = false;

	*ns = 0;
	for (; unit && text < unit_name; text++) {
		if (*text == '.' && fraction)
			return -EINVAL;
		if (*text == '.') {
			fraction = true;
			continue;
		}
		digits = true;
		place = fraction ? place / 10 : unit;
		if ((!fraction && __builtin_mul_overflow(*ns, 10, ns)) || __builtin_add_overflow(*ns, (*text - '0') * place, ns))
			return -EINVAL;
	}
	return digits && *ns <= INT64_MAX / 2 ? 0 : -EINVAL;
}

int text_number(const char *text, int64_t least, int64_t most, int64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoll(text, &end, 10);
	return errno || end == text || *end || *value < least || *value > most ? -EINVAL : 0;
}

int text_refuse(char *why, size_t room, int err, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, room, format, arguments);
	va_end(arguments);
	return err;
}
