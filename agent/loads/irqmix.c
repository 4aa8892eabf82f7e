/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that raise one kind of interrupt or softirq after the other, in an order that the seed decides, while a second
 * thread of each keeps a CPU busy in the same memory, so that interrupts between processors have somewhere to go.
 */
#include "system/sys.h"

#include "system/clock.h"
#include "loads/common/network.h"
#include "loads/irqmix.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

enum { WORKERS, SEED };
enum { PAGES = 16, DATAGRAM = 1024, TICK_NS = 50000 };
enum { BARRIER_ALL = 2, BARRIER_JOIN = 4 };

#ifndef SYS_membarrier
#define SYS_membarrier (-1) /* answers ENOSYS, as a kernel before Linux 4.3 does */
#endif

static const struct load_option options[] = {
	{ "workers", "processes, each with a busy thread besides (default: one for each CPU)", 1, 1024, LOAD_PER_CPU },
	{ "seed", "of the order of steps (default: 1)", 0, INT32_MAX, 1 },
	{ NULL, NULL, 0, 0, 0 },
};

struct mix {
	int timer, datagrams, file;
	char *pages;
	size_t size;
	pthread_t busy;
	cpu_set_t cpus;
};

static int64_t space(const struct load_order *order)
{
	return order->values[WORKERS] * LOAD_MIB;
}

static void on_signal(int number)
{
	(void)number;
}

static void *be_busy(void *argument)
{
	const struct mix *mix = argument;
	const volatile char *pages = mix->pages;

	for (size_t at = 0;; at = (at + 64) % mix->size)
		(void)pages[at];
	return NULL;
}

static int do_timers(struct mix *mix, struct irqmix_step step)
{
	uint64_t expiries;
	int err = sys_timerfd_arm(mix->timer, clock_now_ns() + TICK_NS, TICK_NS);

	for (uint32_t i = 0; i < step.amount && !err; i++)
		err = read(mix->timer, &expiries, sizeof(expiries)) < 0 ? -errno : 0;
	sys_timerfd_arm(mix->timer, 0, 0);
	return err;
}

static int nth_cpu(const cpu_set_t *cpus, int n)
{
	int cpu = 0;

	for (;; cpu++)
		if (CPU_ISSET(cpu, cpus) && n-- == 0)
			return cpu;
}

/* A CPU may go offline meanwhile; then it stays where it is. */
static int do_migrate(struct mix *mix, struct irqmix_step step)
{
	cpu_set_t one;

	for (uint32_t i = 0; i < step.amount; i++) {
		CPU_ZERO(&one);
		CPU_SET(nth_cpu(&mix->cpus, (int)((step.choice + i) % (uint32_t)CPU_COUNT(&mix->cpus))), &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	sched_setaffinity(0, sizeof(mix->cpus), &mix->cpus);
	return 0;
}

/* Linux 4.16; without a word where the kernel can't. */
static int do_barrier(struct mix *mix, struct irqmix_step step)
{
	(void)mix;
	for (uint32_t i = 0; i < step.amount; i++)
		syscall(SYS_membarrier, BARRIER_ALL, 0);
	return 0;
}

static int do_protect(struct mix *mix, struct irqmix_step step)
{
	for (uint32_t i = 0; i < step.amount; i++) {
		if (mprotect(mix->pages, mix->size, PROT_READ) < 0 || mprotect(mix->pages, mix->size, PROT_READ | PROT_WRITE) < 0)
			return -errno;
		mix->pages[step.choice % mix->size]++;
	}
	return 0;
}

static int do_discard(struct mix *mix, struct irqmix_step step)
{
	for (uint32_t i = 0; i < step.amount; i++) {
		memset(mix->pages, (int)i, mix->size);
		if (madvise(mix->pages, mix->size, MADV_DONTNEED) < 0)
			return -errno;
	}
	return 0;
}

static int do_signals(struct mix *mix, struct irqmix_step step)
{
	int err = 0;

	for (uint32_t i = 0; i < step.amount && !err; i++)
		err = -pthread_kill(mix->busy, SIGUSR1);
	return err;
}

/* The kernel drops what finds no room. */
static int do_packets(struct mix *mix, struct irqmix_step step)
{
	char data[DATAGRAM] = "";

	for (uint32_t i = 0; i < step.amount; i++)
		if (send(mix->datagrams, data, 1 + step.choice % DATAGRAM, MSG_DONTWAIT) < 0 && errno != EAGAIN && errno != ENOBUFS)
			return -errno;
	while (recv(mix->datagrams, data, sizeof(data), MSG_DONTWAIT) >= 0)
		;
	return errno == EAGAIN ? 0 : -errno;
}

/* Linux 2.6.17 begins to write without waiting for the end, which on a busy medium takes seconds. */
static int do_disk(struct mix *mix, struct irqmix_step step)
{
	const char block[4096] = "";
	off_t at = (off_t)(step.choice % (LOAD_MIB / sizeof(block)) * sizeof(block));

	return pwrite(mix->file, block, sizeof(block), at) < 0 || sync_file_range(mix->file, at, sizeof(block), SYNC_FILE_RANGE_WRITE) < 0 ?
		       -errno :
		       0;
}

/* A socket that hears only itself. */
static int open_datagrams(void)
{
	struct sockaddr_in address;
	int fd = inet_open_here(SOCK_DGRAM, &address);

	return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : fd;
}

static int open_mix(struct mix *mix)
{
	mix->timer = (int)syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC);
	mix->datagrams = open_datagrams();
	mix->file = load_open_file();
	mix->size = PAGES * (size_t)sysconf(_SC_PAGESIZE);
	mix->pages = load_map(mix->size);
	if (mix->datagrams < 0 || mix->file < 0)
		return mix->datagrams < 0 ? mix->datagrams : mix->file;
	if (mix->timer < 0 || sched_getaffinity(0, sizeof(mix->cpus), &mix->cpus) < 0)
		return -errno;
	syscall(SYS_membarrier, BARRIER_JOIN, 0);
	signal(SIGUSR1, on_signal);
	return mix->pages ? -pthread_create(&mix->busy, NULL, be_busy, mix) : -ENOMEM;
}

static int work(const struct load_order *order, struct load_slot *slot)
{
	static int (*const steps[MIX_KINDS])(struct mix *, struct irqmix_step) = {
		[MIX_TIMERS] = do_timers,   [MIX_MIGRATE] = do_migrate, [MIX_BARRIER] = do_barrier, [MIX_PROTECT] = do_protect,
		[MIX_DISCARD] = do_discard, [MIX_SIGNALS] = do_signals, [MIX_PACKETS] = do_packets, [MIX_DISK] = do_disk,
	};
	static struct mix mix;
	uint32_t state = irqmix_start((uint32_t)order->values[SEED], (uint32_t)(slot - order->slots));
	int err = open_mix(&mix);

	for (; !err; slot->work++) {
		struct irqmix_step step = irqmix_next(&state);

		err = steps[step.kind](&mix, step);
	}
	return err;
}

const struct load load_irqmix = {
	.name = "irqmix",
	.help = "a random mix of what raises interrupts and softirqs, with all CPUs busy; writes in $TMPDIR or /tmp",
	.unit = "steps",
	.options = options,
	.space = space,
	.work = work,
};
