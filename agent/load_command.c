/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "load_command.h"

#include "loads/common/start.h"
#include "options.h"
#include "system/clock.h"
#include "system/threads.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

struct loading {
	struct config *config;
	int64_t start_ns, before[CONFIG_LOADS];
	struct pollfd sources[2]; /* signals, standard input */
};

/* What each has done, and in the last second. False: nobody can read it. */
static bool print_work(struct loading *loading, int64_t seconds)
{
	printf("%lld s", (long long)seconds);
	for (int i = 0; i < loading->config->n_loads; i++) {
		struct running_load *load = &loading->config->loads[i];
		int64_t work = load_work(load);

		printf("%s %s %lld (+%lld) %s", i ? "," : ":", load->name, (long long)work,
		       (long long)(work - loading->before[i]), load_unit(load));
		loading->before[i] = work;
	}
	putchar('\n');
	return fflush(stdout) == 0;
}

/* Until then. False: it has been asked to end. */
static bool wait_until(struct loading *loading, int64_t until_ns)
{
	struct pollfd *sources = loading->sources;
	struct signalfd_siginfo info;
	int64_t left_ns;
	char ignored[256];

	while ((left_ns = until_ns - clock_now_ns()) > 0) {
		if (poll(sources, 2, (int)(left_ns / 1000000) + 1) <= 0)
			continue;
		if (sources[0].revents && read(sources[0].fd, &info, sizeof(info)) == sizeof(info))
			return info.ssi_signo == SIGCHLD || info.ssi_signo == SIGCONT;
		if (sources[1].revents && read(sources[1].fd, ignored, sizeof(ignored)) <= 0)
			return false;
	}
	return true;
}

static int load_until_asked(struct loading *loading, char *why, size_t room)
{
	struct config *config = loading->config;
	int64_t next_ns = loading->start_ns + NS_PER_SECOND;
	int64_t end_ns = config->duration_ns ? loading->start_ns + config->duration_ns : INT64_MAX;
	bool goes_on = true;

	while (goes_on && clock_now_ns() < end_ns) {
		goes_on = wait_until(loading, next_ns < end_ns ? next_ns : end_ns);
		for (int i = 0; i < config->n_loads; i++)
			if (load_died(&config->loads[i], why, room))
				return -ECHILD;
		if (clock_now_ns() < next_ns)
			continue;
		goes_on = print_work(loading, (next_ns - loading->start_ns) / NS_PER_SECOND) && goes_on;
		next_ns += NS_PER_SECOND;
	}
	return 0;
}

int loading_main(int argc, char **argv, char *why, size_t room)
{
	static struct config config;
	struct loading loading = { .config = &config };
	int err = parse_loads(argc, argv, &config, why, room);

	if (err)
		return err;
	for (int i = 0; i < config.n_loads; i++)
		config.loads[i].order.patient = true;
	loading.sources[0] = (struct pollfd){ .fd = signals_open(why, room), .events = POLLIN };
	if (loading.sources[0].fd < 0)
		return loading.sources[0].fd;
	loading.sources[1] = (struct pollfd){ .fd = config.stop_on_eof ? STDIN_FILENO : -1, .events = POLLIN };
	err = loads_start(config.loads, config.n_loads, why, room);
	loading.start_ns = clock_now_ns();
	if (!err)
		err = load_until_asked(&loading, why, room);
	loads_stop(config.loads, config.n_loads);
	return err;
}
