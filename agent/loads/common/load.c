/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "loads/load.h"

#include "system/clock.h"
#include "system/folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { SHORTEST_REST_NS = NS_PER_SECOND / 2 };

const struct load *load_find(const char *name)
{
	for (const struct load *const *load = loads; *load; load++)
		if (!strcmp((*load)->name, name))
			return *load;
	return NULL;
}

void load_die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent) /* it died before the line above */
		_exit(1);
}

pid_t load_spawn(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		load_die_with(parent);
	return pid < 0 ? -errno : pid;
}

int load_exit_error(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) ? -WEXITSTATUS(status) : -ECHILD;
}

int load_wait_for_children(void)
{
	int status = 0;

	while (wait(&status) < 0 && errno == EINTR)
		;
	return load_exit_error(status);
}

int load_share_memory(struct load_order *order, int mib, int64_t most, int64_t parts)
{
	int64_t each = memory_room() / LOAD_MIB / parts, *wanted = &order->values[mib];

	if (*wanted > each / 2)
		return -ENOMEM;
	if (*wanted <= 0)
		*wanted = each / 4 > most ? most : each / 4 > 1 ? each / 4 : 1;
	return 0;
}

struct load_pace load_pace(int64_t units, int64_t rate)
{
	return (struct load_pace){ clock_now_ns(), rate > 0 ? units * NS_PER_SECOND / rate : 0 };
}

int64_t load_rest_ns(int64_t units, int64_t rate)
{
	int64_t round_ns = load_pace(units, rate).round_ns;

	return round_ns < SHORTEST_REST_NS ? 0 : round_ns;
}

void load_await_round(struct load_pace *pace)
{
	int64_t now_ns;

	if (!pace->round_ns)
		return;
	pace->due_ns += pace->round_ns;
	now_ns = clock_now_ns();
	if (pace->due_ns < now_ns)
		pace->due_ns = now_ns;
	else
		sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, pace->due_ns);
}

void *load_map(size_t size)
{
	void *region = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return region == MAP_FAILED ? NULL : region;
}

int load_open_file(void)
{
	char name[] = "fileXXXXXX";
	int fd = mkstemp(name);

	if (fd < 0)
		return -errno;
	unlink(name);
	return fd;
}

void load_touch(char *region, size_t size, struct load_slot *slot)
{
	volatile char *page = region;
	size_t step = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < size; at += step) {
		page[at] = 1;
		slot->work += at % LOAD_MIB == 0;
	}
}

void load_default_signals(void)
{
	static const int ours[] = { SIGINT, SIGTERM, SIGPIPE, SIGXFSZ };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < (int)(sizeof(ours) / sizeof(*ours)); i++)
		signal(ours[i], SIG_DFL);
}

void load_fill_in_presets(const struct load_option *options, struct load_order *order)
{
	for (int i = 0; options[i].name; i++)
		if (order->values[i] < 0)
			order->values[i] = options[i].preset == LOAD_PER_CPU ? order->cpus : options[i].preset;
}

const char *load_missing(const struct load *load, int cpus)
{
	struct load_order order = { .cpus = cpus };

	memset(order.values, -1, sizeof(order.values));
	load_fill_in_presets(load->options, &order);
	return load->unsupported ? load->unsupported(&order) : NULL;
}
