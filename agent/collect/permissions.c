/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/permissions.h"

#include "system/threads.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

int collect_rt_permitted(struct bytes *text, int pid)
{
	char line[128];
	int status;
	pid_t child = fork();

	(void)pid;
	if (child < 0)
		return -errno;
	if (!child) {
		const struct sched_param lowest = { .sched_priority = 1 };

		_exit(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &lowest) ? errno : 0);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!WIFEXITED(status))
		return -ECHILD;
	if (WEXITSTATUS(status))
		snprintf(line, sizeof(line), "no: %d %s\n", WEXITSTATUS(status), strerror(WEXITSTATUS(status)));
	else
		snprintf(line, sizeof(line), "yes\n");
	put_bytes(text, line, strlen(line));
	return 0;
}
