/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A library to preload into QEMU, so that its virtual time (-icount, one thread for all processors) depends on the guest alone.
 *
 * The thread of the processors marks a processor as halted before it has added the processor's last instructions to the clock. The
 * main loop takes that mark for an idle guest, and moves the clock to the next timer. If the instructions are added only then, the
 * clock is late by as many nanoseconds. Which of the two comes first is up to the host's scheduler.
 *
 * So the main loop waits here: as soon as it has the big lock again, until the thread of the processors waits for that lock or
 * sleeps. By then the instructions are counted, and that thread cannot go on before the main loop gives the lock back.
 *
 * RTPROOF_GUARD_REPORT names a file. It gets the line "loaded" when QEMU starts, and the line "guards" in the first
 * round of the main loop that knows the thread of the processors. RTPROOF_GUARD_PRELOAD: what LD_PRELOAD was before, for the programs that QEMU starts.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

/* QEMU's own functions. The second is called bql_locked from QEMU 9.0 on. A QEMU that does not export them is not guarded. */
extern bool qemu_in_vcpu_thread(void) __attribute__((weak));
extern bool qemu_mutex_iothread_locked(void) __attribute__((weak));
extern bool bql_locked(void) __attribute__((weak));

static int (*next_mutex_lock)(pthread_mutex_t *);
static int (*next_cond_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*next_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

static bool guarding;			/* the functions of QEMU are there */
static char *report;			/* the file for what this library says; NULL once all is said */
static _Atomic(pthread_mutex_t *) big_lock; /* known from the first round of the main loop on */
static _Atomic(unsigned int) running;	/* the thread of the processors neither waits for the big lock nor sleeps */
static atomic_bool main_waits, processors_known;

static __thread bool in_main __attribute__((tls_model("initial-exec")));
static __thread bool polled __attribute__((tls_model("initial-exec")));
static __thread bool in_processors __attribute__((tls_model("initial-exec")));

static void say(const char *line)
{
	int file = report ? open(report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

	if (file < 0)
		return;
	(void)!write(file, line, strlen(line));
	close(file);
}

static bool has_big_lock(void)
{
	return bql_locked ? bql_locked() : qemu_mutex_iothread_locked();
}

static void find_next(void)
{
	*(void **)&next_mutex_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	*(void **)&next_cond_wait = dlsym(RTLD_NEXT, "pthread_cond_wait");
	*(void **)&next_ppoll = dlsym(RTLD_NEXT, "ppoll");
}

/* A shell script may start QEMU, so this library stays preloaded until it is in QEMU, and no longer. */
__attribute__((constructor)) static void start(void)
{
	const char *before = getenv("RTPROOF_GUARD_PRELOAD"), *file = getenv("RTPROOF_GUARD_REPORT");

	find_next();
	if (!qemu_in_vcpu_thread || !(bql_locked || qemu_mutex_iothread_locked))
		return;
	report = file ? strdup(file) : NULL;
	in_main = guarding = true;
	if (before && *before)
		setenv("LD_PRELOAD", before, 1);
	else
		unsetenv("LD_PRELOAD");
	unsetenv("RTPROOF_GUARD_PRELOAD");
	unsetenv("RTPROOF_GUARD_REPORT");
	say("loaded\n");
}

static long futex(int operation, unsigned int value)
{
	return syscall(SYS_futex, &running, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static bool is_processors(void)
{
	if (guarding && !in_main && !in_processors && qemu_in_vcpu_thread()) {
		in_processors = true;
		atomic_store(&processors_known, true);
	}
	return in_processors;
}

static void rest(void)
{
	atomic_store(&running, 0);
	if (atomic_load(&main_waits))
		futex(FUTEX_WAKE, INT_MAX);
}

static void wait_for_processors(void)
{
	atomic_store(&main_waits, true);
	while (atomic_load(&running))
		futex(FUTEX_WAIT, 1);
	atomic_store(&main_waits, false);
	if (report && atomic_load(&processors_known)) {
		say("guards\n");
		report = NULL;
	}
}

/* Another library's constructor may lock before ours has run. */
static int lock(pthread_mutex_t *mutex)
{
	if (!next_mutex_lock)
		find_next();
	return next_mutex_lock(mutex);
}

/* The main loop's first round makes the lock known, so a wait may begin while it is unknown and end while it is known. */
static bool is_of_processors(const pthread_mutex_t *mutex)
{
	return mutex == atomic_load_explicit(&big_lock, memory_order_relaxed) && is_processors();
}

PUBLIC int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int result;

	if (in_main && polled) {
		polled = false;
		if (has_big_lock())	/* it polled within a round, and has had the lock all the time */
			return lock(mutex);
		result = lock(mutex);
		atomic_store(&big_lock, mutex);
		wait_for_processors();
		return result;
	}
	if (is_of_processors(mutex))
		rest();
	result = lock(mutex);
	if (is_of_processors(mutex))
		atomic_store(&running, 1);
	return result;
}

PUBLIC int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	int result;

	if (!next_cond_wait)
		find_next();
	if (is_of_processors(mutex))
		rest();
	result = next_cond_wait(condition, mutex);
	if (is_of_processors(mutex))
		atomic_store(&running, 1);
	return result;
}

PUBLIC int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *signals)
{
	if (!next_ppoll)
		find_next();
	polled = in_main;
	return next_ppoll(files, count, timeout, signals);
}
