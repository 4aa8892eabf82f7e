/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "signals.h"

#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

int signals_open(char *why, size_t room)
{
	sigset_t signals, blocked;
	struct sigaction nothing = { .sa_handler = SIG_IGN };

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGCONT);
	/* setitimer()'s signal goes to any thread that has it unblocked; only the one that waits for it may get it. */
	blocked = signals;
	sigaddset(&blocked, SIGALRM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigaction(SIGPIPE, &nothing, NULL);
	sigaction(SIGXFSZ, &nothing, NULL);
	int fd = sys_result(signalfd(-1, &signals, SFD_CLOEXEC));

	if (fd < 0)
		snprintf(why, room, "signals can't be read: %s", strerror(-fd));
	return fd;
}
