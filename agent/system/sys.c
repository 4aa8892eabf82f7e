/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

bool sys_time64_works = !SYS_HAS_TIME32;

static struct sys_time64 to_time64(int64_t ns)
{
	return (struct sys_time64){ ns / NS_PER_SECOND, ns % NS_PER_SECOND };
}

static struct sys_time32 to_time32(int64_t ns)
{
	return (struct sys_time32){ (int32_t)(ns / NS_PER_SECOND), (int32_t)(ns % NS_PER_SECOND) };
}

void sys_init(void)
{
	struct sys_time64 now;

	sys_time64_works = syscall(SYS_CLOCK_GETTIME64, CLOCK_MONOTONIC, &now) == 0;
}

int sys_sleep(clockid_t clock, int flags, int64_t time_ns)
{
	if (sys_time64_works) {
		struct sys_time64 t = to_time64(time_ns);

		return sys_result(syscall(SYS_CLOCK_NANOSLEEP64, clock, flags, &t, (void *)0));
	}
	struct sys_time32 t = to_time32(time_ns);

	return sys_result(syscall(SYS_CLOCK_NANOSLEEP32, clock, flags, &t, (void *)0));
}

static int arm(long call64, long call32, int id, int64_t first_ns, int64_t period_ns)
{
	if (sys_time64_works) {
		struct sys_interval64 t = { to_time64(period_ns), to_time64(first_ns) };

		return sys_result(syscall(call64, id, TIMER_ABSTIME, &t, (void *)0));
	}
	struct sys_interval32 t = { to_time32(period_ns), to_time32(first_ns) };

	return sys_result(syscall(call32, id, TIMER_ABSTIME, &t, (void *)0));
}

int sys_timer_arm(int timer, int64_t first_ns, int64_t period_ns)
{
	return arm(SYS_TIMER_SETTIME64, SYS_TIMER_SETTIME32, timer, first_ns, period_ns);
}

int sys_timerfd_arm(int fd, int64_t first_ns, int64_t period_ns)
{
	return arm(SYS_TIMERFD_SETTIME64, SYS_TIMERFD_SETTIME32, fd, first_ns, period_ns);
}

#if defined(__x86_64__) || defined(__i386__)

enum { HYPERVISOR_BIT = 31, HYPERVISOR_LEAF = 0x40000000 };

void sys_hypervisor_name(char name[13])
{
	unsigned int a, b, c, d;

	memset(name, 0, 13);
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> HYPERVISOR_BIT & 1))
		return;
	__cpuid(HYPERVISOR_LEAF, a, b, c, d);
	memcpy(name, &b, sizeof(b));
	memcpy(name + 4, &c, sizeof(c));
	memcpy(name + 8, &d, sizeof(d));
	if (!*name)
		memcpy(name, "unnamed", sizeof("unnamed"));
}

#else

void sys_hypervisor_name(char name[13])
{
	memset(name, 0, 13);
}

#endif
