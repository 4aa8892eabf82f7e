// SPDX-License-Identifier: GPL-2.0-only
/* What the device refuses, and how. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int start_error(const struct rtproof_start *start)
{
	int device = open("/dev/rtproof", O_RDWR);
	int error = error_of(ioctl(device, RTPROOF_START, start));

	close(device);
	return error;
}

/* What START says with one parameter of `usual` changed. */
#define REFUSED(mode, field, value) ({ struct rtproof_start s_ = usual(mode); s_.field = (value); start_error(&s_); })

static void parameters(void)
{
	EXPECT(REFUSED(RTPROOF_TIMER, size, sizeof(struct rtproof_start)) == 0);
	EXPECT(REFUSED(RTPROOF_TIMER, size, 0) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, size, sizeof(struct rtproof_start) + 8) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, mode, 4) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, mode, UINT32_MAX) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, cpu, -2) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, cpu, 100000) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, cpu, -1) == 0);
	EXPECT(REFUSED(RTPROOF_TIMER, period_ns, 0) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, period_ns, 19999) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, period_ns, 3600000000001ull) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, period_ns, UINT64_MAX) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, first_due_ns, now_ns() + 3700000000000ull) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, first_due_ns, UINT64_MAX) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, batch, 0) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, batch, 1u << 20) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, batch_ns, UINT64_MAX) == EINVAL);
	EXPECT(REFUSED(RTPROOF_USER, batch, 2) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, end_index, 1) == 0);
	EXPECT(({ struct rtproof_start s_ = usual(0); s_.from_index = s_.end_index = 7; start_error(&s_); }) == EINVAL);
}

static void policies(void)
{
	EXPECT(REFUSED(RTPROOF_TASK, priority, 0) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TASK, priority, 100) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TASK, policy, SCHED_OTHER) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TASK, policy, SCHED_RR) == 0);
	EXPECT(REFUSED(RTPROOF_LOOP, policy, 6) == EINVAL);
	EXPECT(REFUSED(RTPROOF_LOOP, policy, UINT32_MAX) == EINVAL);
	EXPECT(REFUSED(RTPROOF_TIMER, policy, SCHED_FIFO) == EINVAL);
	EXPECT(REFUSED(RTPROOF_USER, priority, 1) == EINVAL);
}

static void order(void)
{
	int device = open("/dev/rtproof", O_RDWR);
	struct rtproof_start start = usual(RTPROOF_TIMER);
	struct rtproof_summary summary = { .size = sizeof(summary) };
	struct rtproof_event event;
	uint32_t version = 0;

	EXPECT(ioctl(device, RTPROOF_VERSION, &version) == 0 && version == RTPROOF_ABI);
	EXPECT(error_of((int)read(device, &event, sizeof(event))) == EINVAL);
	EXPECT(error_of(ioctl(device, RTPROOF_STOP)) == EINVAL);
	EXPECT(error_of(ioctl(device, RTPROOF_SUMMARY, &summary)) == EINVAL);
	EXPECT(error_of(ioctl(device, RTPROOF_TASK_ID, &version)) == ESRCH);
	EXPECT(ioctl(device, RTPROOF_START, &start) == 0);
	EXPECT(error_of(ioctl(device, RTPROOF_START, &start)) == EBUSY);
	EXPECT(error_of(ioctl(device, RTPROOF_TASK_ID, &version)) == ESRCH);
	EXPECT(ioctl(device, RTPROOF_STOP) == 0);
	EXPECT(ioctl(device, RTPROOF_STOP) == 0);
	EXPECT(error_of(ioctl(device, RTPROOF_START, &start)) == EBUSY);
	close(device);
}

static void calls(void)
{
	struct rtproof_start start = usual(RTPROOF_TIMER);
	struct rtproof_summary summary = { .size = sizeof(summary), .stage = RTPROOF_STAGE_TASK };
	int device = started(&start);
	void *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rtproof_event event;

	EXPECT(error_of(ioctl(device, RTPROOF_SUMMARY, &summary)) == EINVAL);
	summary.stage = UINT32_MAX;
	EXPECT(error_of(ioctl(device, RTPROOF_SUMMARY, &summary)) == EINVAL);
	summary.stage = RTPROOF_STAGE_IRQ;
	summary.size = 1;
	EXPECT(error_of(ioctl(device, RTPROOF_SUMMARY, &summary)) == EINVAL);
	summary.size = sizeof(summary);
	summary.bins_address = (uintptr_t)nowhere;
	EXPECT(error_of(ioctl(device, RTPROOF_SUMMARY, &summary)) == EFAULT);
	EXPECT(error_of(ioctl(device, RTPROOF_SUMMARY, nowhere)) == EFAULT);
	EXPECT(error_of(ioctl(device, RTPROOF_START, nowhere)) == EFAULT);
	EXPECT(error_of(ioctl(device, _IO('r', 0x99))) == ENOTTY);
	EXPECT(error_of((int)read(device, &event, sizeof(event) - 1)) == EINVAL);
	EXPECT(error_of((int)syscall(SYS_read, device, nowhere, sizeof(event))) == EFAULT);
	EXPECT(error_of((int)write(device, &event, sizeof(event))) == EINVAL);
	EXPECT(error_of((int)lseek(device, 0, SEEK_SET)) == ESPIPE);
	close(device);
}

static int open_error_of_nobody(void)
{
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit(setresuid(65534, 65534, 65534) ? 255 : error_of(open("/dev/rtproof", O_RDWR)));
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

static void privilege(void)
{
	EXPECT(open_error_of_nobody() == EACCES);
	EXPECT(chmod("/dev/rtproof", 0666) == 0);
	EXPECT(open_error_of_nobody() == EPERM);
	EXPECT(chmod("/dev/rtproof", 0600) == 0);
}

static void unload(void)
{
	struct rtproof_start start = usual(RTPROOF_TASK);
	int device = started(&start);

	EXPECT(error_of((int)syscall(SYS_delete_module, "rtproof", O_NONBLOCK)) == EWOULDBLOCK);
	close(device);
}

const struct check refusal_checks[] = {
	{ "parameters", parameters }, { "policies", policies }, { "order", order }, { "calls", calls },
	{ "privilege", privilege }, { "unload", unload }, { 0 },
};
