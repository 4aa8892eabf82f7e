/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/cpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 8 * sizeof(unsigned long) };

bool cpus_has(const struct cpus *cpus, int cpu)
{
	return cpu >= 0 && cpu < CPUS_MOST && (cpus->bits[cpu / BITS] >> (cpu % BITS) & 1);
}

void cpus_add(struct cpus *cpus, int cpu)
{
	cpus->bits[cpu / BITS] |= 1UL << (cpu % BITS);
}

void cpus_remove(struct cpus *cpus, int cpu)
{
	cpus->bits[cpu / BITS] &= ~(1UL << (cpu % BITS));
}

int cpus_count(const struct cpus *cpus)
{
	int n = 0;

	for (int cpu = 0; cpu < CPUS_MOST; cpu++)
		n += cpus_has(cpus, cpu);
	return n;
}

int cpus_nth(const struct cpus *cpus, int n)
{
	for (int cpu = 0; cpu < CPUS_MOST; cpu++)
		if (cpus_has(cpus, cpu) && n-- == 0)
			return cpu;
	return -1;
}

static int parse_cpu(const char **text)
{
	char *end;
	long cpu = strtol(*text, &end, 10);

	if (end == *text || **text == '-' || **text == '+' || **text == ' ' || cpu < 0 || cpu >= CPUS_MOST)
		return -EINVAL;
	*text = end;
	return (int)cpu;
}

int cpus_parse(const char *text, struct cpus *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	for (;;) {
		int first = parse_cpu(&text), last = first;

		if (first >= 0 && *text == '-') {
			text++;
			last = parse_cpu(&text);
		}
		if (first < 0 || last < first)
			return -EINVAL;
		for (int cpu = first; cpu <= last; cpu++)
			cpus_add(cpus, cpu);
		if (!*text)
			return 0;
		if (*text++ != ',')
			return -EINVAL;
	}
}

void cpus_format(const struct cpus *cpus, char *text, size_t room)
{
	size_t used = 0;

	text[0] = '\0';
	for (int cpu = 0; cpu < CPUS_MOST; cpu++) {
		if (!cpus_has(cpus, cpu))
			continue;
		int last = cpu;

		while (cpus_has(cpus, last + 1))
			last++;
		if (used + 16 > room) {
			snprintf(text + used, room - used, "...");
			return;
		}
		used += (size_t)snprintf(text + used, room - used, last > cpu ? "%s%d-%d" : "%s%d", used ? "," : "", cpu,
					 last);
		cpu = last;
	}
}

int cpus_get_affinity(int thread, struct cpus *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	int answer = sys_result(syscall(SYS_sched_getaffinity, thread, sizeof(cpus->bits), cpus->bits));

	return answer < 0 ? answer : 0;
}

int cpus_set_affinity(int thread, const struct cpus *cpus)
{
	return sys_result(syscall(SYS_sched_setaffinity, thread, sizeof(cpus->bits), cpus->bits));
}
