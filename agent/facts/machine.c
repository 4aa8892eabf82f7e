/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "facts/machine.h"

#include "facts/real_time.h"
#include "system/processes.h"
#include "system/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* What is kept ends beyond what a chunk may hold, so that the chunk says that it was cut. */
enum { READ_MOST = 512 * 1024, KEPT_MOST = 1024 * 1024, CPUS_ASKED = 256, LOG_READ_ALL = 3, LOG_SIZE = 10 };

/* What configures the scheduler, its clocks and co-kernels; a line for what is left out begins with "# ". */
static const char *const options[] = {
	"Linux/", "CONFIG_PREEMPT", "CONFIG_ARCH_HAS_PREEMPT", "CONFIG_HAVE_PREEMPT", "CONFIG_HIGH_RES_TIMERS", "CONFIG_NO_HZ",
	"CONFIG_HZ", "CONFIG_XENO", "CONFIG_IPIPE", "CONFIG_DOVETAIL", "CONFIG_IRQ_PIPELINE", "CONFIG_EVL", "CONFIG_RTAI",
	"CONFIG_ARM_FCSE", "CONFIG_ATMEL_TC", "CONFIG_RT_GROUP_SCHED", "CONFIG_CPU_FREQ", "CONFIG_CPU_IDLE", "CONFIG_SMP",
	"CONFIG_IRQ_FORCED_THREADING", "CONFIG_RCU_BOOST", "CONFIG_RCU_NOCB", "CONFIG_LOCALVERSION", "CONFIG_LOCKDEP",
	"CONFIG_DEBUG_PREEMPT", "CONFIG_CMDLINE=", "CONFIG_FB=", "CONFIG_DRM=", "CONFIG_FTRACE", "CONFIG_BPF_SYSCALL",
	"CONFIG_CLOCKSOURCE",
	/* For the audit, too: what costs time, and the last options, which show that the file is whole. */
	"CONFIG_DEBUG_", "CONFIG_PROVE_", "CONFIG_LOCK_STAT", "CONFIG_SLUB", "CONFIG_KASAN", "CONFIG_KCSAN", "CONFIG_KMSAN", "CONFIG_UBSAN",
	"CONFIG_KFENCE", "CONFIG_LATENCYTOP", "CONFIG_SCHEDSTATS", "CONFIG_IRQSOFF_TRACER", "CONFIG_PREEMPT_TRACER", "CONFIG_TRACING",
	"CONFIG_HWLAT", "CONFIG_OSNOISE", "CONFIG_TIMERLAT", "CONFIG_RCU_", "CONFIG_LOCKUP_DETECTOR", "CONFIG_SOFTLOCKUP", "CONFIG_HARDLOCKUP",
	"CONFIG_EFI=", "CONFIG_EFI_DISABLE_RUNTIME", "CONFIG_PSI", "CONFIG_RUNTIME_TESTING_MENU", "CONFIG_HAS_DMA", "CONFIG_IKCONFIG",
	"CONFIG_AUDIT=", "CONFIG_NUMA", NULL,
};

/* Lines of the kernel's log that tell how it schedules, or that it had trouble with it. */
static const char *const messages[] = {
	"scheduling while atomic", "sleeping function called", "RT throttling", "Dynamic Preempt", "Xenomai", "I-pipe", "Adeos",
	"RTAI", "EVL", "IRQ pipeline", "Unknown kernel command line", "interrupt took", "took too long", "unstable", "detected stall", "soft lockup",
	"Lockdown:", "Kernel is locked down", "DL replenish", "Hypervisor detected", "Booting paravirtualized",
	"] Linux version ", /* the first line since the boot */
	"detected expedited stall", "hogged CPU", "blocked for more than", "Kernel command line:", "stealtime",
	"nder-voltage", "ndervoltage", "callbacks suppressed", NULL,
};

static bool has_word(const char *line, const char *end, const char *word, bool in_line)
{
	size_t length = strlen(word);

	if (!in_line)
		return (size_t)(end - line) >= length && !memcmp(line, word, length);
	return memmem(line, (size_t)(end - line), word, length);
}

void system_filter(struct bytes *kept, const char *text, const char *const *words, bool in_line)
{
	for (const char *end; *text; text = *end ? end + 1 : end) {
		const char *line = text, *const *word = words;

		end = text + strcspn(text, "\n");
		if (!in_line && end - line > 2 && !memcmp(line, "# ", 2))
			line += 2;
		while (*word && !has_word(line, end, *word, in_line))
			word++;
		if (!*word || kept->length > KEPT_MOST)
			continue;
		put_bytes(kept, text, (size_t)(end - text));
		put_u8(kept, '\n');
	}
}

static void put_line(struct bytes *bytes, const char *line)
{
	put_bytes(bytes, line, strlen(line));
}

/* So that the host can tell an option that is not set from a line that was not kept. */
static void put_kept(struct bytes *bytes, const char *const *words)
{
	put_line(bytes, "# rtproof kept lines that begin with:");
	for (; *words; words++) {
		put_u8(bytes, ' ');
		put_line(bytes, *words);
	}
	put_u8(bytes, '\n');
}

static void put_thread(struct bytes *bytes, int process, int thread)
{
	/* As ps -c calls the policies, by their kernel numbers. */
	static const char *const classes[] = { "TS", "FF", "RR", "B", "ISO", "IDL", "DLN" };
	char path[64], line[160], priority[16] = "-", nice[16] = "-";
	struct taskstat stat;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", process, thread);
	if (taskstat_read(path, &stat) || bytes->length > KEPT_MOST)
		return;
	if (stat.priority)
		snprintf(priority, sizeof(priority), "%d", stat.priority);
	else
		snprintf(nice, sizeof(nice), "%d", stat.nice);
	snprintf(line, sizeof(line), stat.of_kernel ? "%d %d %s %s %s %d [%s]\n" : "%d %d %s %s %s %d %s\n", process, thread,
		 (unsigned int)stat.policy < sizeof(classes) / sizeof(*classes) ? classes[stat.policy] : "?", priority, nice,
		 stat.cpu, stat.name);
	put_line(bytes, line);
}

/* Every thread of the system, as `ps -eLfc` shows it. */
static int collect_threads(struct system_part *part)
{
	DIR *processes = opendir("/proc");
	int process, thread;

	if (!processes)
		return -errno;
	put_line(&part->content, "PID TID CLS RTPRIO NICE PSR COMM\n");
	while ((process = processes_next_number(processes))) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/task", process);
		DIR *threads = opendir(path);

		while ((thread = processes_next_number(threads)))
			put_thread(&part->content, process, thread);
		if (threads)
			closedir(threads);
	}
	closedir(processes);
	return 0;
}

/* As it is, compressed, or the first text that has it, of which only some lines are kept. */
static int collect_config(struct system_part *part)
{
	static const char *const places[][2] = {
		{ "/boot/config-", "" },
		{ "/lib/modules/", "/config" },
		{ "/usr/lib/ostree-boot/config-", "" },
		{ "/lib/modules/", "/build/.config" },
		{ "/usr/src/linux-headers-", "/.config" },
	};
	char *text = malloc(READ_MOST + 1);
	struct utsname name;
	int length = text ? text_read_file(part->path, text, READ_MOST) : -ENOMEM, err = length;

	if (length > 0)
		put_bytes(&part->content, text, (size_t)length);
	uname(&name);
	for (size_t i = 0; text && length <= 0 && i < sizeof(places) / sizeof(*places); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s%s%s", places[i][0], name.release, places[i][1]);
		length = text_read_file(path, text, READ_MOST);
		if (length <= 0)
			continue;
		text[length] = '\0';
		snprintf(part->path, sizeof(part->path), "%s", path);
		put_kept(&part->content, options);
		system_filter(&part->content, text, options, false);
	}
	free(text);
	return length > 0 ? 0 : err;
}

static int collect_log(struct system_part *part)
{
	int size = sys_result(syscall(SYS_syslog, LOG_SIZE, NULL, 0));
	char *text = size < 0 ? NULL : malloc((size_t)size + 1);
	int length = text ? sys_result(syscall(SYS_syslog, LOG_READ_ALL, text, size)) : size < 0 ? size : -ENOMEM;

	if (length >= 0) {
		text[length] = '\0';
		system_filter(&part->content, text, messages, true);
	}
	free(text);
	return length < 0 ? length : 0;
}

/* Of each CPU whose frequency is governed: governor, lowest, highest and present frequency in kHz. */
static int collect_frequencies(struct system_part *part)
{
	static const char *const files[] = { "governor", "min_freq", "max_freq", "cur_freq" };
	int err = -ENOENT;

	for (int cpu = 0; cpu < CPUS_ASKED; cpu++) {
		char path[128], value[64], line[320];
		int used = snprintf(line, sizeof(line), "cpu%d", cpu), failed = 0;

		for (size_t i = 0; !failed && i < sizeof(files) / sizeof(*files); i++) {
			snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_%s", cpu, files[i]);
			int answer = text_read_line(path, value, sizeof(value));

			failed = i ? 0 : answer;
			used += snprintf(line + used, sizeof(line) - (size_t)used, " %s", answer ? "-" : value);
		}
		if (failed)
			continue;
		put_line(&part->content, line);
		put_u8(&part->content, '\n');
		err = 0;
	}
	return err;
}

static int collect_group(struct system_part *part)
{
	return rt_budget_own(&part->content);
}

static int collect_fair_server(struct system_part *part)
{
	return rt_budget_fair_server(&part->content);
}

void system_collect(struct system_part *parts)
{
	static const struct {
		const char *path;
		int (*collect)(struct system_part *part);
	} ways[SYSTEM_PARTS] = {
		{ "threads", collect_threads },
		{ "/proc/config.gz", collect_config },
		{ "kernel-log", collect_log },
		{ "frequencies", collect_frequencies },
		{ "rt-group", collect_group },
		{ "fair-server", collect_fair_server },
	};

	for (int i = 0; i < SYSTEM_PARTS; i++) {
		snprintf(parts[i].path, sizeof(parts[i].path), "%s", ways[i].path);
		parts[i].err = ways[i].collect(&parts[i]);
	}
}

void system_free(struct system_part *parts)
{
	for (int i = 0; i < SYSTEM_PARTS; i++)
		bytes_free(&parts[i].content);
}
