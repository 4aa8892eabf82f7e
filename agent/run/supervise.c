/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "run/supervise.h"

#include "loads/common/start.h"
#include "measure/workers.h"
#include "system/clock.h"

#include <poll.h>
#include <sys/signalfd.h>

enum { GRACE_NS = 2000000000 }; /* for threads to end by themselves after the last due time */

void supervise_loads(struct run *run)
{
	for (int i = 0; i < run->config->n_loads; i++) {
		struct running_load *load = &run->config->loads[i];
		char why[256];

		if (!load_died(load, why, sizeof(why)))
			continue;
		run_note(run, WHOLE_RUN, "load_died", "%s", load->name);
		run_ask_to_stop(run, END_LOAD_DIED, why);
	}
}

/* When every due time has passed; INT64_MAX where only the count of samples ends the run. */
static int64_t planned_end_ns(const struct run *run)
{
	const struct config *config = run->config;
	double length_ns = config_length_ns(config);
	bool keeps_period = config->method->on_grid || config->method->keeps_period;

	if (length_ns > 9e18 || (config->samples && !keeps_period))
		return INT64_MAX;
	return run->origin_ns + (int64_t)length_ns + 2 * config->period_ns;
}

static void take_signal(struct run *run, int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		supervise_loads(run);
	else if (info.ssi_signo == SIGCONT)
		run_note(run, WHOLE_RUN, "continued", "SIGCONT");
	else
		run_ask_to_stop(run, END_INTERRUPTED,
				info.ssi_signo == SIGINT ? "SIGINT" : info.ssi_signo == SIGHUP ? "SIGHUP" : "SIGTERM");
}

static void take_input(struct run *run, struct pollfd *input)
{
	char ignored[256];
	ssize_t n = read(input->fd, ignored, sizeof(ignored));

	if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return;
	run_ask_to_stop(run, END_HOST_GONE, "standard input ended");
	input->fd = -1;
}

/* How long the main thread still waits. */
struct patience {
	int64_t deadline_ns; /* when the threads should have ended by themselves */
	int64_t give_up_ns;  /* when those that were asked to end are left behind */
	bool overdue;
};

static void watch_time(struct run *run, struct patience *patience)
{
	if (clock_now_ns() <= patience->deadline_ns)
		return;
	if (patience->overdue) {
		run_ask_to_stop(run, END_AS_ASKED, "some threads did not end by themselves");
		return;
	}
	/* The grace counts from now, should the whole process have been stopped until now. */
	patience->overdue = true;
	patience->deadline_ns = clock_now_ns() + GRACE_NS;
}

static void stop_if_asked(struct run *run, struct trace *trace, struct patience *patience)
{
	if (run->notices.stop_asked || workers_done(run))
		trace_stop(trace);
	if (!run->notices.stop_asked)
		return;
	workers_stop(run);
	if (patience->give_up_ns == INT64_MAX)
		patience->give_up_ns = clock_now_ns() + GRACE_NS + run->config->period_ns;
}

/*
 * The main thread's part of the run: signals, loads, the host, the time. A thread that does not come back after the
 * last due time is given twice the grace, once before and once after it is asked to stop.
 */
void supervise(struct run *run, struct trace *trace, int signal_fd)
{
	struct pollfd fds[] = {
		{ .fd = run->wake_fds[0], .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = run->config->stop_on_eof ? STDIN_FILENO : -1, .events = POLLIN },
	};
	struct patience patience = { .deadline_ns = planned_end_ns(run), .give_up_ns = INT64_MAX };

	while (workers_done(run) < run->started && clock_now_ns() < patience.give_up_ns) {
		char ignored[64];

		poll(fds, 3, run->notices.stop_asked ? 50 : 1000);
		if (fds[0].revents && read(fds[0].fd, ignored, sizeof(ignored)) < 0)
			continue;
		if (fds[0].revents)
			workers_check(run);
		if (fds[1].revents)
			take_signal(run, signal_fd);
		if (fds[2].revents)
			take_input(run, &fds[2]);
		watch_time(run, &patience);
		stop_if_asked(run, trace, &patience);
	}
	trace_stop(trace);
}
