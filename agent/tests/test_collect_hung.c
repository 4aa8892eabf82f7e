/* SPDX-License-Identifier: Apache-2.0 */
/* A file system whose driver never answers: what reads it cannot even be killed, and the collector must come back nevertheless. */
#include "system/sys.h"

#include "collect/collect.h"

#include "check.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { QUICK_MS = 300 };

static char folder[64] = "/tmp/rtproof-hung-XXXXXX";

static const struct audit_probe no_probes[] = { { 0, 0, 0, false, false } };

static void answer_init(int device, const struct fuse_in_header *head, const struct fuse_init_in *asked)
{
	struct {
		struct fuse_out_header head;
		struct fuse_init_out init;
	} answer;

	memset(&answer, 0, sizeof(answer));
	answer.head.len = sizeof(answer);
	answer.head.unique = head->unique;
	answer.init.major = FUSE_KERNEL_VERSION;
	answer.init.minor = FUSE_KERNEL_MINOR_VERSION < asked->minor ? FUSE_KERNEL_MINOR_VERSION : asked->minor;
	answer.init.max_write = 4096;
	CHECK(write(device, &answer, sizeof(answer)) == (ssize_t)sizeof(answer));
}

/* Takes every request and answers none but the first. */
static void serve(int device)
{
	static char request[256 * 1024];

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no file system behind that hangs */
	for (;;) {
		ssize_t n = read(device, request, sizeof(request));
		const struct fuse_in_header *head = (const struct fuse_in_header *)request;

		if (n < 0 && errno != EINTR)
			_exit(0);
		if (n > 0 && head->opcode == FUSE_INIT)
			answer_init(device, head, (const struct fuse_init_in *)(head + 1));
	}
}

/* How many children there are, without one; -1: the kernel does not tell. */
static int count_children(pid_t but)
{
	char path[64], list[1024] = "";
	int n = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return -1;
	CHECK(read(fd, list, sizeof(list) - 1) >= 0 && close(fd) == 0);
	for (char *word = strtok(list, " "); word; word = strtok(NULL, " "))
		n += atoi(word) != but;
	return n;
}

int main(void)
{
	char options[96], inside[96], pattern[96];
	struct collection found;
	pid_t server;

	/* The driver's messages are in the byte order of the kernel, and an emulator does not turn them round. */
	if (strstr(getenv("RUN") ? getenv("RUN") : "", "qemu"))
		SKIP("an emulator does not pass the messages of a driver on");
	if (geteuid())
		SKIP("only root may mount a file system");
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (device < 0)
		SKIP("there is no /dev/fuse");
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		SKIP("no mount namespace can be made here");
	CHECK(mkdtemp(folder));
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (mount("hung", folder, "fuse", MS_NOSUID | MS_NODEV, options)) {
		rmdir(folder);
		SKIP("no FUSE file system can be mounted here");
	}
	server = fork();
	CHECK(server >= 0);
	if (!server)
		serve(device);
	close(device);
	snprintf(inside, sizeof(inside), "%s/file", folder);
	snprintf(pattern, sizeof(pattern), "%s/*", folder);
	const struct audit_path paths[] = { { inside, FILE_CONTENT }, { pattern, FILE_CONTENT }, { "/proc/self/comm", FILE_CONTENT },
					    { 0, FILE_CONTENT } };
	const struct collect_plan plan = { paths, NULL, NULL, no_probes, QUICK_MS, FACTS_MOST };

	memset(&found, 0, sizeof(found));
	CHECK(collect_system(&found, &plan, MOMENT_START, 0) == 0);
	CHECK(found.hung == 2 && !found.died && !found.left_out.length);
	CHECK(memmem(found.entries.data, found.entries.length, "/proc/self/commtest_collect_hu", 30));
	CHECK(memmem(found.entries.data, found.entries.length, pattern, strlen(pattern)));
	int left = count_children(server);

	CHECK(left == 2 || left == -1); /* both readers still wait for the driver, although they were killed */
	collect_free(&found);
	CHECK(kill(server, SIGKILL) == 0);
	while (wait(NULL) > 0 || errno == EINTR)
		continue; /* without its driver, the file system answers with an error */
	CHECK(umount2(folder, MNT_DETACH) == 0 && rmdir(folder) == 0);
	return EXIT_SUCCESS;
}
