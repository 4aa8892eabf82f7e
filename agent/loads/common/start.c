/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "loads/common/start.h"

#include "loads/common/group.h"
#include "loads/common/keeper.h"
#include "loads/common/program.h"
#include "system/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define SETTLE_NS 300000000LL

static uint32_t count_slots(const struct load *load, const struct load_order *order)
{
	return load->slots ? load->slots(order) : (uint32_t)order->values[0];
}

static int say(const struct running_load *running, int err, char *why, size_t room)
{
	snprintf(why, room, "load %s could not be started: %s", running->name, strerror(-err));
	return err;
}

int load_prepare(struct running_load *running, char *why, size_t room)
{
	const struct load *load = running->load;
	const char *missing;

	load_fill_in_presets(load->options, &running->order);
	missing = load->unsupported ? load->unsupported(&running->order) : NULL;
	if (missing) {
		snprintf(why, room, "load %s can't run here: %s", running->name, missing);
		return -ENOSYS;
	}
	running->slots = count_slots(load, &running->order);
	int err = running->slots ? 0 : -EINVAL;

	if (!err && load->prepare)
		err = load->prepare(&running->order);
	return err ? say(running, err, why, room) : 0;
}

/* With twice the room: the load shall not be what fills the medium, nor see it full. */
static int open_folder(struct running_load *running)
{
	int64_t space = running->load->space ? running->load->space(&running->order) : 0;

	if (!space)
		return 0;
	int err = folder_open(&running->folder);

	if (err || 2 * space <= folder_room(&running->folder))
		return err;
	folder_leave(&running->folder);
	folder_await_end(&running->folder);
	return -ENOSPC;
}

/* Of a program. Where there can be no group, its keeper counts. */
static void open_group(struct running_load *running)
{
	const struct load_order *order = &running->order;

	if (!order->words)
		return;
	const struct group_limits limits = { order->values[PROGRAM_MEMORY] * LOAD_MIB, order->values[PROGRAM_PROCESSES] };

	if (group_open(&running->group, &limits) == 0)
		running->order.group = &running->group;
	running->order.note = order->group ? "a control group holds it to its limits of memory and processes" :
					     "its memory and processes are counted four times a second; there is no control group";
}

static pid_t start_load(struct running_load *running)
{
	pid_t pid = load_spawn();

	if (pid == 0) {
		setpgid(0, 0);
		streams_close();
		load_default_signals();
		int err = load_bind(running);

		_exit(-(err ? err : load_become(running)));
	}
	if (pid > 0)
		setpgid(pid, pid); /* either side may come first */
	return pid;
}

static int start_processes(struct running_load *running)
{
	size_t size = running->slots * sizeof(struct load_slot);

	running->order.slots = mmap(NULL, size + LOAD_WHY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	running->seen = calloc(running->slots, sizeof(*running->seen));
	running->worked = calloc(running->slots, sizeof(*running->worked));
	if (running->order.slots == MAP_FAILED || !running->seen || !running->worked)
		return -ENOMEM;
	running->order.why = (char *)(running->order.slots + running->slots);
	running->pid = keeper_needed(running) ? keeper_start(running) : start_load(running);
	return running->pid < 0 ? running->pid : 0;
}

int load_start(struct running_load *running, char *why, size_t room)
{
	int err = load_prepare(running, why, room);

	if (err)
		return err;
	open_group(running);
	err = open_folder(running);
	if (!err)
		err = start_processes(running);
	folder_leave(&running->folder);
	folder_leave(&running->group);
	return err ? say(running, err, why, room) : 0;
}

/* It has not been waited for yet, so nobody else can have its number. */
static void bury(struct running_load *running, char *why, size_t room)
{
	const char *name = running->name, *reason = running->order.why;
	int status = 0;

	kill(-running->pid, SIGKILL); /* what is left of its group */
	if (keeper_needed(running))
		keeper_bury(running->pid);
	waitpid(running->pid, &status, 0);
	running->pid = 0;
	if (!*reason) /* a load ends with the error that ended it */
		reason = load_exit_error(status) == -ECHILD ? "a process of it was killed" : strerror(-load_exit_error(status));
	snprintf(why, room, "load %s died: %.*s", name, LOAD_WHY, reason);
}

bool load_died(struct running_load *running, char *why, size_t room)
{
	siginfo_t end = { .si_pid = 0 };

	if (running->pid <= 0 || waitid(P_PID, (id_t)running->pid, &end, WEXITED | WNOHANG | WNOWAIT) < 0 || !end.si_pid)
		return false;
	bury(running, why, room);
	return true;
}

/* Gives programs that are of no use here a moment to say so. */
static int settle(struct running_load *running, int count, char *why, size_t room)
{
	int64_t until_ns = clock_now_ns() + SETTLE_NS;
	bool programs = false;

	for (int i = 0; i < count; i++)
		programs = programs || running[i].order.words;
	while (programs && clock_now_ns() < until_ns) {
		for (int i = 0; i < count; i++)
			if (load_died(&running[i], why, room))
				return -ECHILD;
		sys_sleep(CLOCK_MONOTONIC, 0, SETTLE_NS / 30);
	}
	return 0;
}

int loads_start(struct running_load *running, int count, char *why, size_t room)
{
	for (int i = 0; i < count; i++) {
		int err = load_start(&running[i], why, room);

		if (err)
			return err;
	}
	return settle(running, count, why, room);
}

void loads_stop(struct running_load *running, int count)
{
	for (int i = 0; i < count; i++)
		load_stop(&running[i]);
}

void load_stop(struct running_load *running)
{
	if (running->pid > 0) {
		kill(keeper_needed(running) ? running->pid : -running->pid, keeper_needed(running) ? SIGTERM : SIGKILL);
		kill(running->pid, SIGCONT); /* should someone have stopped the keeper */
		while (waitpid(running->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	folder_await_end(&running->folder);
	folder_await_end(&running->group);
	if (running->order.slots && running->order.slots != MAP_FAILED)
		munmap(running->order.slots, running->slots * sizeof(struct load_slot) + LOAD_WHY);
	free(running->seen);
	free(running->worked);
	memset(running, 0, sizeof(*running));
}
