/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/permissions.h"

#include "collect/lines.h"
#include "system/threads.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static int try_policy(void)
{
	return -sys_set_policy(0, POLICY_FIFO, 1);
}

static int try_lock(void)
{
	return mlockall(MCL_CURRENT | MCL_FUTURE) ? errno : 0;
}

/* The child's exit code is the errno, because the kernel's numbers of these calls are below 128 on every architecture but MIPS. */
static int try_in_child(struct bytes *text, int (*attempt)(void))
{
	int status;
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (!child)
		_exit(attempt());
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!WIFEXITED(status))
		return -ECHILD;
	if (WEXITSTATUS(status))
		put_format(text, "no: %d %s\n", WEXITSTATUS(status), strerror(WEXITSTATUS(status)));
	else
		put_format(text, "yes\n");
	return 0;
}

int collect_rt_permitted(struct bytes *text, int pid)
{
	(void)pid;
	return try_in_child(text, try_policy);
}

int collect_lock_permitted(struct bytes *text, int pid)
{
	(void)pid;
	return try_in_child(text, try_lock);
}
