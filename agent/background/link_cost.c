/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "background/link_cost.h"

#include "system/processes.h"
#include "system/text.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <libgen.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { ANCESTORS_MOST = 8, ENVIRONMENT_ROOM = 16384, STATUS_ROOM = 4096 };

static bool is_server(pid_t pid)
{
	char path[64], name[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	return text_read_line(path, name, sizeof(name)) == 0 && (!strncmp(name, "sshd", 4) || !strncmp(name, "dropbear", 8));
}

/* The nearest ancestor that is a server: between it and the follower there may be a shell, or sudo. */
static pid_t find_server(void)
{
	pid_t pid = getppid();
	struct process process;

	for (int i = 0; i < ANCESTORS_MOST && pid > 1; i++) {
		if (is_server(pid))
			return pid;
		if (processes_look(pid, &process))
			return 0;
		pid = process.parent;
	}
	return 0;
}

/* sudo takes the variable away, but the shell before it, or the server's child, still has it. */
static bool connection_of(pid_t pid, char *words, size_t room)
{
	static const char name[] = "SSH_CONNECTION=";
	static char environment[ENVIRONMENT_ROOM];
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	int length = text_read_file(path, environment, sizeof(environment) - 1);

	if (length <= 0)
		return false;
	environment[length] = '\0';
	for (const char *at = environment; at < environment + length; at += strlen(at) + 1)
		if (!strncmp(at, name, sizeof(name) - 1)) {
			snprintf(words, room, "%s", at + sizeof(name) - 1);
			return true;
		}
	return false;
}

/* The address on this side, as the server told the first of the ancestors that has it. */
static bool own_address(char address[64])
{
	pid_t pid = getpid();
	char words[160];
	struct process process;

	for (int i = 0; i < ANCESTORS_MOST && pid > 1; i++) {
		if (connection_of(pid, words, sizeof(words)))
			return sscanf(words, "%*s %*s %63s", address) == 1;
		if (processes_look(pid, &process))
			return false;
		pid = process.parent;
	}
	return false;
}

static bool has_address(const struct ifaddrs *each, const char *address)
{
	struct in_addr four;
	struct in6_addr six;

	if (!each->ifa_addr)
		return false;
	if (each->ifa_addr->sa_family == AF_INET && inet_pton(AF_INET, address, &four) == 1)
		return !memcmp(&((const struct sockaddr_in *)(const void *)each->ifa_addr)->sin_addr, &four, sizeof(four));
	if (each->ifa_addr->sa_family == AF_INET6 && inet_pton(AF_INET6, address, &six) == 1)
		return !memcmp(&((const struct sockaddr_in6 *)(const void *)each->ifa_addr)->sin6_addr, &six, sizeof(six));
	return false;
}

static bool interface_of(const char *address, char name[IF_NAMESIZE])
{
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all) < 0)
		return false;
	for (const struct ifaddrs *each = all; each && !found; each = each->ifa_next)
		if (has_address(each, address)) {
			snprintf(name, IF_NAMESIZE, "%s", each->ifa_name);
			found = true;
		}
	freeifaddrs(all);
	return found;
}

static void add_word(char words[DELIVERY_NAMES], const char *word)
{
	size_t used = strlen(words);

	if (used + strlen(word) + 2 < DELIVERY_NAMES)
		snprintf(words + used, DELIVERY_NAMES - used, "%s%s", used ? "," : "", word);
}

static void add_numbers(char words[DELIVERY_NAMES], const char *folder)
{
	DIR *numbers = opendir(folder);
	char word[16];

	for (int number; (number = processes_next_number(numbers)) > 0;) {
		snprintf(word, sizeof(word), "%d", number);
		add_word(words, word);
	}
	if (numbers)
		closedir(numbers);
}

/*
 * A line of /proc/interrupts is the device's if it has the interface's name (eth0-rx-0), the name of the device behind it
 * (virtio1-input.0), or one of its numbers. An interface without a device (veth, a bridge) has no interrupts of its own.
 */
static void describe_device(char words[DELIVERY_NAMES], const char *interface)
{
	char path[128], real[4096], line[32];

	add_word(words, interface);
	snprintf(path, sizeof(path), "/sys/class/net/%s/device", interface);
	if (!realpath(path, real))
		return;
	add_word(words, basename(real));
	snprintf(path, sizeof(path), "/sys/class/net/%s/device/irq", interface);
	if (text_read_line(path, line, sizeof(line)) == 0 && atoi(line) > 0)
		add_word(words, line);
	snprintf(path, sizeof(path), "/sys/class/net/%s/device/msi_irqs", interface);
	add_numbers(words, path);
}

static int64_t voluntary_switches(pid_t pid)
{
	static const char name[] = "\nvoluntary_ctxt_switches:";
	char path[64], text[STATUS_ROOM];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	int length = text_read_file(path, text, sizeof(text) - 1);

	if (length <= 0)
		return 0;
	text[length] = '\0';
	const char *found = strstr(text, name);

	return found ? atoll(found + sizeof(name) - 1) : 0;
}

static int64_t server_ticks(pid_t server)
{
	struct process process;

	return server && processes_look(server, &process) == 0 ? process.cpu_ticks - process.waited_ticks : 0;
}

void link_cost_open(struct link_cost *cost, const struct delivery *before)
{
	char address[64], interface[IF_NAMESIZE];

	memset(cost, 0, sizeof(*cost));
	cost->sent = before->sent;
	cost->wakeups = before->wakeups;
	cost->cpu_ns = before->cpu_ns;
	if (*before->cpus && strcmp(before->cpus, "-") != 0)
		(void)cpus_parse(before->cpus, &cost->cpus);
	cost->server = find_server();
	cost->server_wakeups = cost->server ? voluntary_switches(cost->server) : 0;
	cost->server_ticks = server_ticks(cost->server);
	/* A link-local address has its device behind it. */
	if (own_address(address) && (address[strcspn(address, "%")] = '\0', interface_of(address, interface)))
		describe_device(cost->device, interface);
	else if (strcmp(before->device, "-") != 0)
		snprintf(cost->device, sizeof(cost->device), "%s", before->device);
}

void link_cost_look(struct link_cost *cost)
{
	struct taskstat stat;
	char path[64];
	unsigned int own;

	if (syscall(SYS_getcpu, &own, (void *)0, (void *)0) == 0)
		cpus_add(&cost->cpus, (int)own);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)cost->server);
	if (cost->server && taskstat_read(path, &stat) == 0 && stat.cpu >= 0)
		cpus_add(&cost->cpus, stat.cpu);
}

void link_cost_tell(const struct link_cost *cost, int64_t sent, struct delivery *delivery)
{
	struct rusage own = { 0 };
	long ticks_per_second = sysconf(_SC_CLK_TCK);
	int64_t ticks = server_ticks(cost->server) - cost->server_ticks;
	int64_t wakeups = cost->server ? voluntary_switches(cost->server) - cost->server_wakeups : 0;

	getrusage(RUSAGE_SELF, &own);
	int64_t own_ns = ((int64_t)own.ru_utime.tv_sec + own.ru_stime.tv_sec) * 1000000000 +
			 ((int64_t)own.ru_utime.tv_usec + own.ru_stime.tv_usec) * 1000;

	delivery->sent = cost->sent + sent;
	delivery->wakeups = cost->wakeups + own.ru_nvcsw + (wakeups > 0 ? wakeups : 0);
	delivery->cpu_ns = cost->cpu_ns + own_ns + (ticks > 0 ? ticks * (1000000000 / ticks_per_second) : 0);
	cpus_format(&cost->cpus, delivery->cpus, sizeof(delivery->cpus));
	snprintf(delivery->device, sizeof(delivery->device), "%s", cost->device);
}

void link_leave_cpus(const char *list)
{
	struct cpus measured, allowed;

	if (cpus_parse(list, &measured) || cpus_get_affinity(0, &allowed))
		return;
	for (int i = 0, cpu; (cpu = cpus_nth(&measured, i)) >= 0; i++)
		cpus_remove(&allowed, cpu);
	if (cpus_count(&allowed))
		cpus_set_affinity(0, &allowed);
}
