/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that are mounted when somebody looks into them: to read facts must not mount them, nor wait for who would. */
#include "system/sys.h"

#include "collect/collect.h"

#include "check.h"
#include "collect/automounts.h"
#include "collect/lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { QUICK_MS = 300, TEXT_MOST = 1 << 20 };

static const struct audit_probe no_probes[] = { { 0, 0, 0, false, false } };

/* Whether each entry of the collection says that the folder waits; how many there are. */
static bool all_wait(const struct collection *collection, int n)
{
	const uint8_t *at = collection->entries.data, *end = at + collection->entries.length;

	for (; at < end; n--) {
		struct audit_entry head;

		memcpy(&head, at, sizeof(head));
		if (head.err != NOT_MOUNTED_YET)
			return false;
		at += sizeof(head) + head.path + head.content;
	}
	return !n && !collection->hung;
}

static bool is_mounted(const char *place)
{
	struct bytes mounts = { NULL, 0, 0, false };
	char wanted[96];

	snprintf(wanted, sizeof(wanted), " %s ", place);
	CHECK(put_file(&mounts, "/proc/self/mounts", TEXT_MOST) == 0);
	bool found = strstr((const char *)mounts.data, wanted);

	bytes_free(&mounts);
	return found;
}

static void check_waits(const char *file, const char *pattern)
{
	const struct audit_path paths[] = { { file, FILE_CONTENT }, { pattern, FILE_CONTENT }, { 0, FILE_CONTENT } };
	const struct collect_plan plan = { paths, NULL, NULL, no_probes, QUICK_MS, FACTS_MOST };
	struct collection found;

	memset(&found, 0, sizeof(found));
	CHECK(automounts_wait(file) && collect_system(&found, &plan, MOMENT_START, 0) == 0 && all_wait(&found, 2));
	collect_free(&found);
}

/* What debugfs does for tracefs. False: this kernel has none of both, or forbids it. */
static bool in_debugfs(void)
{
	if (access("/sys/kernel/tracing", F_OK) || mount("none", "/sys/kernel/debug", "debugfs", 0, NULL))
		return false;
	check_waits("/sys/kernel/debug/tracing/current_tracer", "/sys/kernel/debug/tracing/instances/*/set_event");
	CHECK(!is_mounted("/sys/kernel/debug/tracing") && !automounts_wait("/sys/kernel/debug/sched/features"));
	return umount2("/sys/kernel/debug", MNT_DETACH) == 0;
}

/* Of a daemon that would never answer. In a process group of its own: that of the daemon sees what is below. */
static bool in_autofs(void)
{
	int ends[2], status;
	char options[96];

	if (access("/boot", F_OK) || pipe(ends))
		return false;
	pid_t daemon = fork();

	CHECK(daemon >= 0);
	if (!daemon)
		while (setpgid(0, 0) || pause())
			continue;
	CHECK(setpgid(daemon, daemon) == 0 || errno == EACCES);
	snprintf(options, sizeof(options), "fd=%d,pgrp=%d,minproto=5,maxproto=5,direct", ends[1], (int)daemon);
	bool done = mount("none", "/boot", "autofs", 0, options) == 0;

	if (done) {
		struct pollfd asked = { .fd = ends[0], .events = POLLIN };

		check_waits("/boot/cmdline.txt", "/boot/loader/entries/*.conf");
		CHECK(poll(&asked, 1, 0) == 0 && umount2("/boot", MNT_DETACH) == 0);
	}
	CHECK(kill(daemon, SIGKILL) == 0 && waitpid(daemon, &status, 0) == daemon);
	close(ends[0]);
	close(ends[1]);
	return done;
}

int main(void)
{
	CHECK(!automounts_wait("/proc/version") && !automounts_wait("/bootstrap/x") && !automounts_wait("/nowhere"));
	if (geteuid() || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		SKIP("no mount namespace can be made here");
	bool debugfs = in_debugfs(), autofs = in_autofs();

	if (!debugfs && !autofs)
		SKIP("neither debugfs nor autofs can be mounted here");
	return EXIT_SUCCESS;
}
