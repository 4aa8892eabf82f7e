/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "load.h"

#include "text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

const struct load *load_find(const char *name)
{
	for (const struct load *const *load = loads; *load; load++)
		if (!strcmp((*load)->name, name))
			return *load;
	return NULL;
}

static int parse_option(const struct load *load, char *text, struct load_order *order, char *why, size_t room)
{
	char *value = strchr(text, '=');

	if (value)
		*value++ = '\0';
	for (int i = 0; load->options[i].name; i++) {
		const struct load_option *option = &load->options[i];

		if (strcmp(option->name, text))
			continue;
		if (value && !text_number(value, option->least, option->most, &order->values[i]))
			return 0;
		snprintf(why, room, "option '%s' of load '%s' takes a whole number from %lld to %lld", option->name,
			 load->name, (long long)option->least, (long long)option->most);
		return -EINVAL;
	}
	snprintf(why, room, "load '%s' has no option '%s'", load->name, text);
	return -EINVAL;
}

int load_parse(const char *text, const struct load **load, struct load_order *order, char *why, size_t room)
{
	char copy[256], *rest = NULL;
	int err = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	char *options = strchr(copy, ':');

	if (options)
		*options++ = '\0';
	*load = load_find(copy);
	if (!*load) {
		snprintf(why, room, "there is no load '%s'; see rtproof-agent list", copy);
		return -EINVAL;
	}
	for (int i = 0; i < LOAD_OPTIONS; i++)
		order->values[i] = -1;
	for (char *one = options ? strtok_r(options, ",", &rest) : NULL; one && !err; one = strtok_r(NULL, ",", &rest))
		err = parse_option(*load, one, order, why, room);
	return err;
}

pid_t load_spawn(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != parent) /* it died before the line above */
			_exit(1);
	}
	return pid < 0 ? -errno : pid;
}

int load_wait_for_children(void)
{
	int status = 0;

	while (wait(&status) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) ? -WEXITSTATUS(status) : -ECHILD;
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

void *load_map(size_t size)
{
	void *region = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return region == MAP_FAILED ? NULL : region;
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

/* A load must not keep the agent's pipes open, nor die of its signals, nor be spared when memory runs out. */
static void leave_the_agent(void)
{
	sigset_t none;
	int victim = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	setpgid(0, 0);
	streams_close();
	if (victim >= 0) {
		ssize_t written = write(victim, "1000", 4);

		(void)written; /* kernels before 2.6.36 have no such file */
		close(victim);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}

static void fill_in_presets(const struct load_option *options, struct load_order *order)
{
	for (int i = 0; options[i].name; i++)
		if (order->values[i] < 0)
			order->values[i] = options[i].preset == LOAD_PER_CPU ? order->cpus : options[i].preset;
}

static uint32_t count_slots(const struct load *load, const struct load_order *order)
{
	return load->slots ? load->slots(order) : (uint32_t)order->values[0];
}

int load_prepare(const struct load *load, struct load_order *order, uint32_t *slots)
{
	fill_in_presets(load->options, order);
	*slots = count_slots(load, order);
	if (*slots == 0)
		return -EINVAL;
	return load->prepare ? load->prepare(order) : 0;
}

/* With twice the room: the load shall not be what fills the medium, nor see it full. */
static int open_folder(struct running_load *running)
{
	if (!running->load->space)
		return 0;
	int err = folder_open(&running->folder);

	if (err || 2 * running->load->space(&running->order) <= folder_room(&running->folder))
		return err;
	folder_leave(&running->folder);
	folder_await_end(&running->folder);
	return -ENOSPC;
}

static int work_on_all(const struct running_load *running)
{
	for (uint32_t i = 0; i < running->slots; i++) {
		pid_t pid = load_spawn();

		if (pid < 0)
			return pid;
		if (pid == 0)
			_exit(-running->load->work(&running->order, &running->order.slots[i]));
	}
	return load_wait_for_children();
}

static int be_the_load(struct running_load *running)
{
	leave_the_agent();
	if (running->folder.cleaner && chdir(running->folder.path) < 0)
		return -errno;
	return running->load->work ? work_on_all(running) : running->load->run(&running->order);
}

static int start_processes(struct running_load *running)
{
	size_t size = running->slots * sizeof(struct load_slot);

	running->order.slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	running->seen = calloc(running->slots, sizeof(*running->seen));
	if (running->order.slots == MAP_FAILED || !running->seen)
		return -ENOMEM;
	running->pid = load_spawn();
	if (running->pid == 0)
		_exit(-be_the_load(running));
	if (running->pid < 0)
		return running->pid;
	setpgid(running->pid, running->pid); /* either side may come first */
	return 0;
}

int load_start(struct running_load *running)
{
	int err = load_prepare(running->load, &running->order, &running->slots);

	if (!err)
		err = open_folder(running);
	if (!err)
		err = start_processes(running);
	folder_leave(&running->folder);
	return err;
}

int64_t load_work(struct running_load *running)
{
	for (uint32_t i = 0; i < running->slots; i++) {
		uint32_t now = running->order.slots[i].work;

		running->work += now - running->seen[i];
		running->seen[i] = now;
	}
	return running->work;
}

void load_stop(struct running_load *running)
{
	if (running->pid > 0) {
		kill(-running->pid, SIGKILL);
		while (waitpid(running->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	folder_await_end(&running->folder);
	if (running->order.slots && running->order.slots != MAP_FAILED)
		munmap(running->order.slots, running->slots * sizeof(struct load_slot));
	free(running->seen);
	memset(running, 0, sizeof(*running));
}
