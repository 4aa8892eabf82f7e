/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "loads/common/group.h"

#include "system/text.h"

#include "check.h"

#include <string.h>
#include <sys/wait.h>

enum { MOST = 3, ROOM = 64 << 20 };

static struct folder group;

/* In a process of its own: it is in the group, and can't start more than it may. */
static int join_and_fork(void)
{
	char text[4096];
	int started = 0;

	folder_leave(&group); /* as a program does that is started */
	CHECK(group_join(&group) == 0);
	int n = text_read_file("/proc/self/cgroup", text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	CHECK(strstr(text, strrchr(group.path, '/')));
	for (pid_t pid; started <= MOST && (pid = fork()) >= 0; started++)
		if (pid == 0)
			pause();
	CHECK(errno == EAGAIN && started == MOST - 1);
	return EXIT_SUCCESS;
}

/* What the process above has left runs on until the group is removed. */
static void a_group_holds_its_processes_and_ends_them(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		exit(join_and_fork());
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
	CHECK(group_lacked_processes(&group) && !group_lacked_memory(&group));
	folder_leave(&group);
	folder_await_end(&group);
	CHECK(access(group.path, F_OK) < 0 && errno == ENOENT);
}

static void without_a_group_nothing_is_there_to_remove(void)
{
	const struct folder none = { .path = "/no/such/group" };

	CHECK(group_join(&none) == -ENOENT);
	CHECK(!group_lacked_processes(&none) && !group_lacked_memory(&none));
}

int main(void)
{
	const struct group_limits limits = { ROOM, MOST };

	sys_init();
	alarm(60);
	without_a_group_nothing_is_there_to_remove();
	int err = group_open(&group, &limits);

	CHECK(!err == (group.cleaner > 0));
	if (err)
		SKIP("no control group can be had here");
	a_group_holds_its_processes_and_ends_them();
	return EXIT_SUCCESS;
}
