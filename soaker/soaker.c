/* SPDX-License-Identifier: Apache-2.0
 * usage: rtproof-soaker CPUS PROGRAM...
 *
 * Runs a program beside one soaker on each of the machine's CPUs. A soaker is a process of the policy SCHED_IDLE that is bound
 * to its CPU and does nothing but take instructions. The CPUs of a guest in virtual time share one stream of instructions, and
 * an idle one gives its share to the others. With soakers none is ever idle, so that the speed of a CPU does not depend on
 * whether another one works.
 *
 * Ends as the program does. If a CPU has no soaker, or loses it, the host is told so and the program ends. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_CPUS 64
#define FAILED 70
#define VOICE_HEARD_NS 20000000

static pid_t soakers[MOST_CPUS], program;

/* The host's supervisor in the guest writes what the program says to the same memory, so it gets the time to end that. */
static void tell_host(const char *sentence)
{
	nanosleep(&(struct timespec){.tv_nsec = VOICE_HEARD_NS}, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/rtproof/guest", "guest", "fail", sentence, (char *)NULL);
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

static void soak(void)
{
	for (;;)
		__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop");
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

static void start_soaker(int cpu, int cpus)
{
	char sentence[200];
	int ready[2];
	unsigned char code = ECHILD;
	if (pipe(ready) != 0)
		give_up("no soaker can be started: there is no pipe");
	soakers[cpu] = fork();
	if (soakers[cpu] == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		code = (unsigned char)bind_soaker(cpu);
		if (write(ready[1], &code, 1) != 1 || code)
			_exit(1);
		close(ready[0]);
		close(ready[1]);
		soak();
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

static void pass_on(int number)
{
	if (program > 0)
		kill(program, number);
}

static void start_program(char **words)
{
	program = fork();
	if (program == 0) {
		execvp(words[0], words);
		fprintf(stderr, "%s cannot be started: %s\n", words[0], strerror(errno));
		_exit(127);
	}
	struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* Bound to its CPU alone: a kernel that takes a CPU off line moves what was bound to it. */
static int is_bound(int cpu)
{
	cpu_set_t here;
	return sched_getaffinity(soakers[cpu], sizeof here, &here) == 0 && CPU_COUNT(&here) == 1 && CPU_ISSET(cpu, &here);
}

static void check_soakers(int cpus)
{
	char sentence[200];
	for (int cpu = 0; cpu < cpus; cpu++) {
		if (is_bound(cpu))
			continue;
		snprintf(sentence, sizeof sentence,
			 "the soaker of CPU %d was moved, so the speed of the CPUs depended on who worked: is the CPU off line?", cpu);
		give_up(sentence);
	}
}

static int soaker_of(pid_t pid, int cpus)
{
	for (int cpu = 0; cpu < cpus; cpu++)
		if (soakers[cpu] == pid)
			return cpu;
	return -1;
}

/* The program's status. */
static int attend(int cpus)
{
	char sentence[200];
	int status, cpu;
	for (;;) {
		pid_t pid = wait(&status);
		if (pid == program)
			return status;
		if (pid > 0 && (cpu = soaker_of(pid, cpus)) >= 0) {
			snprintf(sentence, sizeof sentence,
				 "the soaker of CPU %d died (signal %d), and without it the speed of the CPUs depends on who works", cpu,
				 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
			give_up(sentence);
		}
	}
}

int main(int count, char **words)
{
	int cpus = count > 2 ? atoi(words[1]) : 0;
	if (cpus < 1 || cpus > MOST_CPUS) {
		fprintf(stderr, "usage: %s CPUS PROGRAM...\n", words[0]);
		return FAILED;
	}
	for (int cpu = 0; cpu < cpus; cpu++)
		start_soaker(cpu, cpus);
	setenv("RTPROOF_SOAKERS", words[1], 1);
	start_program(words + 2);
	int status = attend(cpus);
	program = 0;
	check_soakers(cpus);
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return FAILED;
}
