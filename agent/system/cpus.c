/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/cpus.h"

#include "system/text.h"

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

void cpus_add_all(struct cpus *cpus, const struct cpus *more)
{
	for (int i = 0; i < CPUS_MOST / BITS; i++)
		cpus->bits[i] |= more->bits[i];
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

int cpus_reach(const struct cpus *own, const struct cpus *asked, struct cpus *reached)
{
	struct cpus wide = *own;

	*reached = *own;
	cpus_add_all(&wide, asked);
	if (!memcmp(&wide, own, sizeof(wide)))
		return 0;
	int err = cpus_set_affinity(0, &wide); /* the kernel leaves out what the thread may not use */

	if (err)
		return err;
	err = cpus_get_affinity(0, reached);
	int back = cpus_set_affinity(0, own);

	return err ? err : back;
}

int cpus_on_line(int cpu)
{
	char list[CPUS_TEXT];
	struct cpus on_line;

	if (text_read_line("/sys/devices/system/cpu/online", list, sizeof(list)) < 0 || cpus_parse(list, &on_line))
		return -1;
	return cpus_has(&on_line, cpu);
}
