/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "taskstat.h"

#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words behind the name, which may have anything in it, from 1: the field's number in proc(5) less two. */
enum { FLAGS = 7, NICE = 17, CPU = 37, PRIORITY, POLICY };

enum { OF_KERNEL = 0x00200000 };

bool taskstat_parse(const char *text, struct taskstat *stat)
{
	const char *name = strchr(text, '('), *at = strrchr(text, ')');
	long words[POLICY + 1] = { 0 };
	int n = 0;

	if (!name || !at)
		return false;
	snprintf(stat->name, sizeof(stat->name), "%.*s", (int)(at - name - 1), name + 1);
	while (n < POLICY && (at = strchr(at + 1, ' ')))
		words[++n] = atol(at + 1);
	stat->of_kernel = words[FLAGS] & OF_KERNEL;
	stat->nice = (int)words[NICE];
	stat->cpu = (int)words[CPU];
	stat->priority = (int)words[PRIORITY];
	stat->policy = (int)words[POLICY];
	return n == POLICY;
}

int taskstat_read(const char *path, struct taskstat *stat)
{
	char text[1024];
	int length = text_read_file(path, text, sizeof(text) - 1);

	text[length < 0 ? 0 : length] = '\0';
	if (length >= 0 && !taskstat_parse(text, stat))
		return -EPROTO;
	return length < 0 ? length : 0;
}
