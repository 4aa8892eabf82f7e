/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs by libc, CPU and kernel: the only place with #ifdef for them.
 *
 * 32-bit systems have two sets of time system calls: the old ones with 32-bit seconds and, since Linux 5.1, the "time64" ones.
 * libc tries the new ones first on every call, which costs a second system call per time stamp on older kernels. So the
 * agent asks once (sys_init) and then calls what works. musl answers ENOSYS to sched_setscheduler(), so that is raw as well.
 */
#ifndef RTPROOF_SYS_H
#define RTPROOF_SYS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000LL

/* Kernel structures, as the system calls want them whatever libc thinks of time_t. */
struct sys_time64 {
	int64_t sec;
	int64_t nsec;
};

struct sys_interval64 {
	struct sys_time64 every, first;
};

struct sys_time32 {
	int32_t sec;
	int32_t nsec;
};

struct sys_interval32 {
	struct sys_time32 every, first;
};

#if LONG_MAX > 0x7fffffffL
#define SYS_HAS_TIME32 0
#define SYS_CLOCK_GETTIME64 SYS_clock_gettime
#define SYS_CLOCK_NANOSLEEP64 SYS_clock_nanosleep
#define SYS_TIMER_SETTIME64 SYS_timer_settime
#define SYS_TIMERFD_SETTIME64 SYS_timerfd_settime
#define SYS_CLOCK_GETTIME32 (-1)
#define SYS_CLOCK_NANOSLEEP32 (-1)
#define SYS_TIMER_SETTIME32 (-1)
#define SYS_TIMERFD_SETTIME32 (-1)
#else
#define SYS_HAS_TIME32 1
#define SYS_CLOCK_GETTIME64 403
#define SYS_CLOCK_NANOSLEEP64 407
#define SYS_TIMER_SETTIME64 409
#define SYS_TIMERFD_SETTIME64 411
#ifdef SYS_clock_gettime32
#define SYS_CLOCK_GETTIME32 SYS_clock_gettime32
#else
#define SYS_CLOCK_GETTIME32 SYS_clock_gettime
#endif
#ifdef SYS_clock_nanosleep_time32
#define SYS_CLOCK_NANOSLEEP32 SYS_clock_nanosleep_time32
#else
#define SYS_CLOCK_NANOSLEEP32 SYS_clock_nanosleep
#endif
#ifdef SYS_timer_settime32
#define SYS_TIMER_SETTIME32 SYS_timer_settime32
#else
#define SYS_TIMER_SETTIME32 SYS_timer_settime
#endif
#ifdef SYS_timerfd_settime32
#define SYS_TIMERFD_SETTIME32 SYS_timerfd_settime32
#else
#define SYS_TIMERFD_SETTIME32 SYS_timerfd_settime
#endif
#endif

/* Waiting without a time-out takes no time structure, so either number will do. */
#ifdef SYS_rt_sigtimedwait
#define SYS_SIGWAIT SYS_rt_sigtimedwait
#else
#define SYS_SIGWAIT SYS_rt_sigtimedwait_time32
#endif
#ifdef SYS_futex
#define SYS_FUTEX SYS_futex
#else
#define SYS_FUTEX SYS_futex_time64
#endif
#define SYS_FUTEX_WAIT 128 /* of this process */
#define SYS_FUTEX_WAKE 129
#ifdef SYS_mq_timedsend
#define SYS_MQ_SEND SYS_mq_timedsend
#define SYS_MQ_RECEIVE SYS_mq_timedreceive
#else
#define SYS_MQ_SEND SYS_mq_timedsend_time32
#define SYS_MQ_RECEIVE SYS_mq_timedreceive_time32
#endif

#ifndef SYS_timerfd_create
#define SYS_timerfd_create SYS_timerfd
#endif

#define SYS_SIGSET_BYTES (_NSIG / 8)

#ifdef SYS_bpf
#define SYS_BPF SYS_bpf
#else
#define SYS_BPF (-1) /* ENOSYS: libc's headers are older than Linux 3.18 */
#endif

/* sched_setattr() came with Linux 3.14 and libc headers with it later. */
struct sys_sched_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* Kernel layout of struct sigevent for SIGEV_THREAD_ID; padded to the kernel's 64 bytes. */
struct sys_sigevent {
	union {
		int number;
		void *pointer;
	} value;
	int signal, notify, thread;
	int pad[12];
};

/* True when the kernel has the 64-bit time calls. Set once by sys_init(), before any thread exists. */
extern bool sys_time64_works;

void sys_init(void);
/* flags: as of clock_nanosleep(). 0 or -errno. */
int sys_sleep(clockid_t clock, int flags, int64_t time_ns);
int sys_timer_arm(int timer, int64_t first_ns, int64_t period_ns);
int sys_timerfd_arm(int fd, int64_t first_ns, int64_t period_ns);

/* What the hypervisor calls itself by CPUID, of at most 12 letters; "" if there is none, or no such instruction. */
void sys_hypervisor_name(char name[13]);

static inline int sys_gettid(void)
{
	return (int)syscall(SYS_gettid);
}

static inline int sys_result(long answer)
{
	return answer < 0 ? -errno : (int)answer;
}

/* fork() that makes namespaces as well, from one thread: what comes after the flags differs by CPU, and is all zero. */
static inline int sys_clone(unsigned long flags)
{
	return sys_result(syscall(SYS_clone, flags, 0UL, 0UL, 0UL, 0UL));
}

/* Fills info; waits for a signal of the set without a time-out. */
static inline int sys_sigwait(const sigset_t *set, siginfo_t *info)
{
	return sys_result(syscall(SYS_SIGWAIT, set, info, (void *)0, SYS_SIGSET_BYTES));
}

static inline int sys_set_policy(int thread, int policy, int priority)
{
	int parameter = priority; /* struct sched_param is one int */

	return sys_result(syscall(SYS_sched_setscheduler, thread, policy, &parameter));
}

static inline int sys_get_policy(int thread)
{
	return sys_result(syscall(SYS_sched_getscheduler, thread));
}

static inline int sys_get_priority(int thread)
{
	int parameter = 0;
	int err = sys_result(syscall(SYS_sched_getparam, thread, &parameter));

	return err ? err : parameter;
}

#endif
