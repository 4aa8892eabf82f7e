/* SPDX-License-Identifier: Apache-2.0
 * usage: rtproof-soaker CPUS PROGRAM...
 *
 * Runs a program beside one soaker on each of the machine's CPUs. A soaker is a process of the policy SCHED_IDLE that is bound
 * to its CPU and does nothing but take instructions. The CPUs of a guest in virtual time share one stream of instructions, and
 * an idle one gives its share to the others. With soakers none is ever idle, so that the speed of a CPU does not depend on
 * whether another one works.
 *
 * Before the program starts, the soakers count their rounds for a while in which nothing else runs. The program gets the share
 * of each CPU in RTPROOF_CPU_SHARES, in the order of their numbers ("0.615 0.385"), and the number of soakers in
 * RTPROOF_SOAKERS. Ends as the program does. If a CPU has no soaker, gets no instructions, loses its soaker or idles, the host
 * is told so and the program ends. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_CPUS 64
#define SHARE_TEXT 8
#define FAILED 70
#define VOICE_HEARD_NS 20000000
#define CALIBRATION_NS 20000000
/* Tests on the host have another helper. */
#ifndef GUEST_HELPER
#define GUEST_HELPER "/rtproof/guest"
#endif

struct soaker {
	pid_t pid;
	volatile uint32_t *rounds; /* in memory that it shares with this process; wraps */
	long idle_ticks;           /* of its CPU, when all soakers ran */
};

static struct soaker soakers[MOST_CPUS];
static int cpus;
static volatile pid_t program;
static volatile sig_atomic_t early_signal;

/* The host's supervisor in the guest writes what the program says to the same memory, so it gets the time to end that. */
static void tell_host(const char *sentence)
{
	nanosleep(&(struct timespec){.tv_nsec = VOICE_HEARD_NS}, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		execl(GUEST_HELPER, "guest", "fail", sentence, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

static void give_up(const char *sentence)
{
	if (program > 0) {
		kill(program, SIGKILL);
		waitpid(program, NULL, 0);
	}
	tell_host(sentence);
	exit(FAILED);
}

static void soak(volatile uint32_t *rounds)
{
	for (;;) {
		*rounds += 1;
		__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop");
	}
}

static int bind_soaker(int cpu)
{
	cpu_set_t here;
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	if (sched_setaffinity(0, sizeof here, &here) != 0)
		return errno;
	/* musl's own function refuses every policy. */
	return syscall(SYS_sched_setscheduler, 0, SCHED_IDLE, &(struct sched_param){0}) == 0 ? 0 : errno;
}

static void become_soaker(int cpu, int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	unsigned char code = (unsigned char)bind_soaker(cpu);
	if (write(ready, &code, 1) != 1 || code)
		_exit(1);
	close(ready);
	soak(soakers[cpu].rounds);
}

static void start_soaker(int cpu)
{
	char sentence[200];
	int ready[2];
	unsigned char code = ECHILD;
	soakers[cpu].rounds = mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (soakers[cpu].rounds == MAP_FAILED || pipe(ready) != 0)
		give_up("no soaker can be started: there is no memory or no pipe for it");
	soakers[cpu].pid = fork();
	if (soakers[cpu].pid == 0) {
		close(ready[0]);
		become_soaker(cpu, ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &code, 1) == 1 && code == 0) {
		close(ready[0]);
		return;
	}
	snprintf(sentence, sizeof sentence,
		 code == EINVAL ? "the kernel runs no CPU %d, although the guest has %d: it was built without SMP, or its arguments limit it"
				: "CPU %d of %d has no soaker",
		 cpu, cpus);
	give_up(sentence);
}

/* The time for which a CPU has idled, in hundredths of a second (proc_pid_stat(5)); -1 if the kernel does not tell. */
static long idle_ticks(int cpu)
{
	char line[400], name[16];
	long idle, waiting, ticks = -1;
	FILE *file = fopen("/proc/stat", "r");
	size_t length = (size_t)snprintf(name, sizeof name, "cpu%d ", cpu);
	while (file && ticks < 0 && fgets(line, sizeof line, file))
		if (!strncmp(line, name, length) && sscanf(line + length, "%*s %*s %*s %ld %ld", &idle, &waiting) == 2)
			ticks = idle + waiting;
	if (file)
		fclose(file);
	return ticks;
}

/* How often the soakers went round while nothing else ran. */
static void count_rounds(uint32_t rounds[])
{
	for (int cpu = 0; cpu < cpus; cpu++)
		rounds[cpu] = *soakers[cpu].rounds;
	nanosleep(&(struct timespec){.tv_nsec = CALIBRATION_NS}, NULL);
	for (int cpu = 0; cpu < cpus; cpu++)
		rounds[cpu] = *soakers[cpu].rounds - rounds[cpu];
}

static void calibrate(void)
{
	uint32_t rounds[MOST_CPUS];
	uint64_t sum = 0;
	char sentence[200], text[MOST_CPUS * SHARE_TEXT] = "";
	count_rounds(rounds);
	for (int cpu = 0; cpu < cpus; cpu++)
		sum += rounds[cpu];
	for (int cpu = 0; cpu < cpus; cpu++) {
		if (!rounds[cpu]) {
			snprintf(sentence, sizeof sentence,
				 "CPU %d of %d got no instructions within %d ms: this QEMU does not share the time between the CPUs",
				 cpu, cpus, CALIBRATION_NS / 1000000);
			give_up(sentence);
		}
		unsigned thousandths = (unsigned)((rounds[cpu] * UINT64_C(1000) + sum / 2) / sum);
		size_t used = strlen(text);
		snprintf(text + used, sizeof text - used, "%s%u.%03u", cpu ? " " : "", thousandths / 1000, thousandths % 1000);
	}
	setenv("RTPROOF_CPU_SHARES", text, 1);
}

static void pass_on(int number)
{
	if (program > 0)
		kill(program, number);
	else
		early_signal = number;
}

static void pass_signals_on(void)
{
	struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* A signal waits until the program can be ended by it. */
static void start_program(char **words)
{
	sigset_t passed, before;
	sigemptyset(&passed);
	sigaddset(&passed, SIGINT);
	sigaddset(&passed, SIGTERM);
	sigprocmask(SIG_BLOCK, &passed, &before);
	pid_t pid = fork();
	if (pid < 0)
		give_up("the program beside the soakers cannot be started: there is no further process");
	if (pid == 0) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		sigprocmask(SIG_SETMASK, &before, NULL);
		execvp(words[0], words);
		fprintf(stderr, "%s cannot be started: %s\n", words[0], strerror(errno));
		_exit(127);
	}
	program = pid;
	if (early_signal)
		kill(program, early_signal);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Bound to its CPU alone: a kernel that takes a CPU off line moves what was bound to it. */
static int is_bound(int cpu)
{
	cpu_set_t here;
	return sched_getaffinity(soakers[cpu].pid, sizeof here, &here) == 0 && CPU_COUNT(&here) == 1 && CPU_ISSET(cpu, &here);
}

/* With another policy it takes instructions from the CPU's work. musl's own function knows no policy. */
static int is_lowest(int cpu)
{
	return syscall(SYS_sched_getscheduler, soakers[cpu].pid) == SCHED_IDLE;
}

/* Also if a soaker was moved and came back, or was stopped: its CPU idled then. */
static void check_soakers(void)
{
	char sentence[200];
	for (int cpu = 0; cpu < cpus; cpu++) {
		if (!is_bound(cpu)) {
			snprintf(sentence, sizeof sentence,
				 "the soaker of CPU %d was moved, so the speed of the CPUs depended on who worked: "
				 "was the CPU taken off line or into a cpuset?",
				 cpu);
			give_up(sentence);
		}
		if (!is_lowest(cpu)) {
			snprintf(sentence, sizeof sentence,
				 "the soaker of CPU %d got another policy than SCHED_IDLE, so it slowed the work down", cpu);
			give_up(sentence);
		}
		long now = idle_ticks(cpu), idled = now - soakers[cpu].idle_ticks;
		if (now < 0) {
			snprintf(sentence, sizeof sentence, "nobody can tell whether CPU %d idled: /proc/stat does not tell any more", cpu);
			give_up(sentence);
		}
		if (idled > 0) {
			snprintf(sentence, sizeof sentence,
				 "CPU %d idled for %ld ms beside its soaker, so the speed of the CPUs depended on who worked", cpu, idled * 10);
			give_up(sentence);
		}
	}
}

static int soaker_of(pid_t pid)
{
	for (int cpu = 0; cpu < cpus; cpu++)
		if (soakers[cpu].pid == pid)
			return cpu;
	return -1;
}

/* The program's status. */
static int attend(void)
{
	char sentence[200];
	int status;
	for (;;) {
		pid_t pid = wait(&status);
		if (pid == program)
			return status;
		int cpu = pid > 0 ? soaker_of(pid) : -1;
		if (cpu >= 0) {
			snprintf(sentence, sizeof sentence,
				 "the soaker of CPU %d died (signal %d), and without it the speed of the CPUs depends on who works", cpu,
				 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
			give_up(sentence);
		}
	}
}

static void end_as(int status)
{
	if (!WIFSIGNALED(status))
		exit(WEXITSTATUS(status));
	signal(WTERMSIG(status), SIG_DFL);
	kill(getpid(), WTERMSIG(status));
	exit(FAILED);
}

int main(int count, char **words)
{
	cpus = count > 2 ? atoi(words[1]) : 0;
	if (cpus < 1 || cpus > MOST_CPUS) {
		fprintf(stderr, "usage: %s CPUS PROGRAM...\n", words[0]);
		return FAILED;
	}
	pass_signals_on();
	for (int cpu = 0; cpu < cpus; cpu++)
		start_soaker(cpu);
	for (int cpu = 0; cpu < cpus; cpu++)
		soakers[cpu].idle_ticks = idle_ticks(cpu);
	calibrate();
	setenv("RTPROOF_SOAKERS", words[1], 1);
	start_program(words + 2);
	int status = attend();
	program = 0;
	check_soakers();
	end_as(status);
}
