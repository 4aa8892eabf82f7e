/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the place of libc's two calls that flush to the medium, and notes what each was asked to flush, in order. */
#ifndef RTPROOF_TESTS_FLUSHED_H
#define RTPROOF_TESTS_FLUSHED_H

#include "check.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FLUSHED_MOST = 16 };

static char flushed[FLUSHED_MOST][300];
static int n_flushed;
static void (*on_first_flush)(void);

static inline int note_flush(int fd, long call)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (n_flushed == FLUSHED_MOST)
		return (int)syscall(call, fd);
	ssize_t length = readlink(link, flushed[n_flushed], sizeof(flushed[0]) - 1);

	CHECK(length > 0);
	flushed[n_flushed++][length] = '\0';
	if (n_flushed == 1 && on_first_flush)
		on_first_flush();
	return (int)syscall(call, fd);
}

int fdatasync(int fd)
{
	return note_flush(fd, SYS_fdatasync);
}

int fsync(int fd)
{
	return note_flush(fd, SYS_fsync);
}

#endif
