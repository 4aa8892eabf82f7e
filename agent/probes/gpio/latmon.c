/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/gpio/latmon.h"

#include "system/clock.h"
#include "system/cpus.h"
#include "system/inet.h"
#include "system/text.h"
#include "system/threads.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { QUEUE = 16384, ADDRESS_ROOM = 24, ACCOUNT_MOST = 1024 + 24 * LATMON_CELLS };

/* The run leaves a thread behind that needs more than two seconds to end, so goodbyes are short. */
enum { LOOK_MS = 20, REQUEST_MS = 5000, CONNECT_MS = 3000, SEND_MS = 1000, GOODBYE_MS = 1500 };

/* A latmon that sends without end must not keep the thread from its end. */
enum { FRAMES_AT_ONCE = 64 };

/* Blocks that are thrown away at an end; one that goes on for ever gets its reset. */
enum { UNREAD_MOST = 16 };

/* So many sentences about clients that were sent away; the account has the number of all. */
enum { SAID_MOST = 10 };

enum state { WAITS, RUNS, OVER };

struct latmon {
	bool listens;
	struct sockaddr_in address;
	pthread_t thread, measuring;
	int listener, fd;

	/* Shared words: of the thread that talks, and of the one that measures. */
	uint32_t state, tail;
	uint32_t left, head, dropped;
	uint32_t queue[QUEUE];

	struct latmon_figures figures; /* ours, or the cells that latmon sent */
	uint64_t samples, overruns, sent; /* of all bulks; samples that went out */
	int64_t sum_ns;
	int32_t min_ns, max_ns;
	uint32_t bulks, refused, strange;
	uint8_t in[4 * LATMON_CELLS];
	size_t n_in;
	bool cells_are_next, has_cells;
	int64_t since_ns; /* the client connected */
	int64_t ask_ns; /* when latmon is asked for edges */
	char peer[ADDRESS_ROOM], outcome[LATMON_WHY];
};

static void put_u32(uint8_t *bytes, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t get_u32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

void latmon_write_bulk(const struct latmon_bulk *bulk, uint8_t *bytes)
{
	put_u32(bytes, (uint32_t)((uint64_t)bulk->sum_ns >> 32));
	put_u32(bytes + 4, (uint32_t)bulk->sum_ns);
	put_u32(bytes + 8, (uint32_t)bulk->min_ns);
	put_u32(bytes + 12, (uint32_t)bulk->max_ns);
	put_u32(bytes + 16, bulk->overruns);
	put_u32(bytes + 20, bulk->samples);
}

void latmon_read_bulk(const uint8_t *bytes, struct latmon_bulk *bulk)
{
	bulk->sum_ns = (int64_t)((uint64_t)get_u32(bytes) << 32 | get_u32(bytes + 4));
	bulk->min_ns = (int32_t)get_u32(bytes + 8);
	bulk->max_ns = (int32_t)get_u32(bytes + 12);
	bulk->overruns = get_u32(bytes + 16);
	bulk->samples = get_u32(bytes + 20);
}

void latmon_count(struct latmon_figures *figures, uint32_t answer_ns)
{
	struct latmon_bulk *bulk = &figures->bulk;
	uint32_t answer_us = answer_ns / 1000, last = figures->n_cells - 1;

	if (answer_ns == LATMON_UNANSWERED) {
		bulk->overruns++;
		return;
	}
	if (!bulk->samples || (int32_t)answer_ns < bulk->min_ns)
		bulk->min_ns = (int32_t)answer_ns;
	if (!bulk->samples || (int32_t)answer_ns > bulk->max_ns)
		bulk->max_ns = (int32_t)answer_ns;
	bulk->sum_ns += answer_ns;
	bulk->overruns += answer_us ? (answer_us - 1) / figures->period_us : 0;
	bulk->samples++;
	if (figures->n_cells)
		figures->cells[answer_us < last ? answer_us : last]++;
}

const char *latmon_refusal(uint32_t period_us, uint32_t cells, uint32_t own_us, char *why, size_t room)
{
	if (!period_us || period_us > LATMON_PERIOD_MOST_US)
		snprintf(why, room, "a period is 1 to %d us, not %u us", LATMON_PERIOD_MOST_US, period_us);
	else if (cells > LATMON_CELLS)
		snprintf(why, room, "a histogram has %d cells at most, not %u", LATMON_CELLS, cells);
	else if (period_us != own_us)
		snprintf(why, room, "it wants a period of %u us and this run has one of %u us: start it with --period %uus", period_us,
			 own_us, period_us);
	else
		return NULL;
	return why;
}

int latmon_address(const char *text, struct sockaddr_in *address)
{
	char host_text[ADDRESS_ROOM];
	const char *colon = strchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : strlen(text);
	int64_t port = LATMON_PORT;
	uint32_t host;

	if (length >= sizeof(host_text) || (colon && text_number(colon + 1, 1, 65535, &port)))
		return -EINVAL;
	memcpy(host_text, text, length);
	host_text[length] = '\0';
	if (inet_parse(host_text, &host))
		return -EINVAL;
	*address = inet_address(host, (int)port);
	return 0;
}

static void write_address(const struct sockaddr_in *address, char *text)
{
	uint32_t host = ntohl(address->sin_addr.s_addr);

	snprintf(text, ADDRESS_ROOM, "%u.%u.%u.%u:%u", host >> 24, host >> 16 & 255, host >> 8 & 255, host & 255,
		 ntohs(address->sin_port));
}

/* What becomes of a client that nobody measures; the run itself goes on. */
static void say(const struct latmon *latmon, const char *who, const char *what)
{
	if (latmon->refused <= SAID_MOST)
		fprintf(stderr, "rtproof-agent: latmon: %s %s\n", who, what);
}

/* What was sent and not read would make the end a reset, which may take figures from the other side. */
static void hang_up(struct latmon *latmon)
{
	if (latmon->fd >= 0) {
		for (int i = 0; i < UNREAD_MOST && recv(latmon->fd, latmon->in, sizeof(latmon->in), MSG_DONTWAIT) > 0; i++)
			;
		close(latmon->fd);
	}
	latmon->fd = -1;
	latmon->n_in = 0;
}

static void refuse(struct latmon *latmon, const char *why)
{
	char what[LATMON_WHY + 32];

	latmon->refused++;
	snprintf(what, sizeof(what), "was sent away: %s", why);
	say(latmon, latmon->peer, what);
	hang_up(latmon);
}

/* The first reason stays: the measuring thread may be reading it. */
static void finish(struct latmon *latmon, bool in_order, const char *outcome)
{
	if (word_load(&latmon->state) == OVER)
		return;
	if (!in_order)
		fprintf(stderr, "rtproof-agent: latmon: %s\n", outcome);
	snprintf(latmon->outcome, sizeof(latmon->outcome), "%s", outcome);
	word_store(&latmon->state, OVER);
}

/* 1 once so many bytes are there, 0 before, or -errno; -EPIPE if the other side has ended. */
static int collect(struct latmon *latmon, size_t bytes)
{
	ssize_t n = recv(latmon->fd, latmon->in + latmon->n_in, bytes - latmon->n_in, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	latmon->n_in += (size_t)n;
	if (n > 0 && latmon->n_in < bytes)
		return 0;
	latmon->n_in = 0;
	return n ? 1 : -EPIPE;
}

/* Of all bulks, sent or received. */
static void add_up(struct latmon *latmon, const struct latmon_bulk *bulk)
{
	latmon->overruns += bulk->overruns;
	if (!bulk->samples)
		return;
	if (!latmon->samples || bulk->min_ns < latmon->min_ns)
		latmon->min_ns = bulk->min_ns;
	if (!latmon->samples || bulk->max_ns > latmon->max_ns)
		latmon->max_ns = bulk->max_ns;
	latmon->sum_ns = (int64_t)((uint64_t)latmon->sum_ns + (uint64_t)bulk->sum_ns); /* the other side's may be anything */
	latmon->samples += bulk->samples;
	latmon->bulks++;
}

/* The side that listens. */

static void send_bulk(struct latmon *latmon)
{
	uint8_t bytes[LATMON_BULK_BYTES];
	struct latmon_bulk *bulk = &latmon->figures.bulk;

	latmon_write_bulk(bulk, bytes);
	add_up(latmon, bulk);
	if (latmon->fd >= 0 && inet_write(latmon->fd, bytes, sizeof(bytes))) {
		hang_up(latmon);
		finish(latmon, false, "the client vanished, or takes no figures");
	}
	if (latmon->fd >= 0)
		latmon->sent += bulk->samples;
	memset(bulk, 0, sizeof(*bulk));
}

static void empty_queue(struct latmon *latmon)
{
	struct latmon_figures *figures = &latmon->figures;

	for (uint32_t head = word_load(&latmon->head); latmon->tail != head; word_store(&latmon->tail, latmon->tail + 1)) {
		latmon_count(figures, latmon->queue[latmon->tail % QUEUE]);
		if (figures->bulk.samples >= LATMON_PERIOD_MOST_US / figures->period_us)
			send_bulk(latmon);
	}
}

static void hear_stop(struct latmon *latmon, uint32_t period_us)
{
	if (period_us) {
		hang_up(latmon);
		finish(latmon, false, "the client asked for edges again without a stop");
		return;
	}
	finish(latmon, true, "the client said stop");
}

static void hear_start(struct latmon *latmon, uint32_t period_us, uint32_t cells)
{
	char why[LATMON_WHY];

	if (latmon_refusal(period_us, cells, latmon->figures.period_us, why, sizeof(why))) {
		refuse(latmon, why);
		return;
	}
	latmon->figures.n_cells = cells;
	word_store(&latmon->state, RUNS);
}

static void hear_client(struct latmon *latmon)
{
	bool runs = word_load(&latmon->state) == RUNS;
	int news = collect(latmon, LATMON_REQUEST_BYTES);

	if (news < 0 && runs) {
		hang_up(latmon);
		finish(latmon, false, "the client vanished without a stop");
	} else if (news < 0) {
		refuse(latmon, "it left before it had asked for edges");
	} else if (news && runs) {
		hear_stop(latmon, get_u32(latmon->in));
	} else if (news) {
		hear_start(latmon, get_u32(latmon->in), get_u32(latmon->in + 4));
	} else if (!runs && clock_now_ns() - latmon->since_ns > REQUEST_MS * 1000000LL) {
		refuse(latmon, "it asked for nothing in five seconds");
	}
}

static void accept_client(struct latmon *latmon)
{
	struct sockaddr_in address = { 0 };
	socklen_t size = sizeof(address);
	int fd = accept4(latmon->listener, (struct sockaddr *)&address, &size, SOCK_CLOEXEC);
	char peer[ADDRESS_ROOM];

	if (fd < 0)
		return;
	write_address(&address, peer);
	if (latmon->fd >= 0 && word_load(&latmon->state) == WAITS) /* it may have left before this one came */
		hear_client(latmon);
	if (latmon->fd >= 0 || word_load(&latmon->state) != WAITS) {
		latmon->refused++;
		say(latmon, peer, "was sent away: another client is being served");
		close(fd);
		return;
	}
	inet_limit(fd, SEND_MS);
	latmon->fd = fd;
	latmon->since_ns = clock_now_ns();
	memcpy(latmon->peer, peer, sizeof(peer));
}

static void serve(struct latmon *latmon)
{
	accept_client(latmon);
	if (latmon->fd >= 0 && word_load(&latmon->state) != OVER)
		hear_client(latmon);
	if (word_load(&latmon->state) != WAITS)
		empty_queue(latmon);
}

static void send_last_figures(struct latmon *latmon)
{
	uint8_t bytes[4 * LATMON_CELLS];
	struct latmon_figures *figures = &latmon->figures;

	empty_queue(latmon);
	if (figures->bulk.samples)
		send_bulk(latmon);
	send_bulk(latmon);
	for (uint32_t i = 0; i < figures->n_cells; i++)
		put_u32(bytes + 4 * (size_t)i, figures->cells[i]);
	if (latmon->fd >= 0 && inet_write(latmon->fd, bytes, 4 * (size_t)figures->n_cells))
		hang_up(latmon);
	latmon->has_cells = true;
}

static void end_serving(struct latmon *latmon)
{
	enum state state = word_load(&latmon->state);

	if (state == RUNS)
		finish(latmon, true, "the run ended before the client said stop");
	if (state == WAITS)
		finish(latmon, false, "no client asked for edges");
	else
		send_last_figures(latmon);
}

/* The side that asks. */

/* Figures that cannot be true are counted, and taken as they are. */
static bool is_strange(const struct latmon_bulk *bulk)
{
	int64_t n = bulk->samples;

	return bulk->min_ns > bulk->max_ns || bulk->sum_ns < n * bulk->min_ns || bulk->sum_ns > n * bulk->max_ns;
}

static void take_bulk(struct latmon *latmon)
{
	struct latmon_bulk bulk;

	latmon_read_bulk(latmon->in, &bulk);
	latmon->cells_are_next = !bulk.samples;
	latmon->strange += bulk.samples && is_strange(&bulk);
	if (!bulk.samples && bulk.overruns > INT32_MAX) /* where others leave rests */
		bulk.overruns = 0;
	add_up(latmon, &bulk);
}

static void take_cells(struct latmon *latmon)
{
	for (uint32_t i = 0; i < LATMON_CELLS; i++)
		latmon->figures.cells[i] = get_u32(latmon->in + 4 * (size_t)i);
	latmon->has_cells = true;
	bool in_order = word_load(&latmon->left);

	finish(latmon, in_order, in_order ? "latmon sent all its figures" : "latmon ended before the run");
}

static void hear_figures(struct latmon *latmon)
{
	int news = 1;

	for (int n = 0; n < FRAMES_AT_ONCE && news > 0 && latmon->fd >= 0 && word_load(&latmon->state) == RUNS; n++) {
		bool cells = latmon->cells_are_next;

		news = collect(latmon, cells ? sizeof(latmon->in) : LATMON_BULK_BYTES);
		if (news > 0)
			cells ? take_cells(latmon) : take_bulk(latmon);
	}
	if (news >= 0)
		return;
	hang_up(latmon);
	finish(latmon, false, latmon->bulks ? "latmon vanished" : "latmon hung up without a figure: has it another period or client?");
}

static int ask(struct latmon *latmon, uint32_t period_us)
{
	uint8_t request[LATMON_REQUEST_BYTES];

	put_u32(request, period_us);
	put_u32(request + 4, period_us ? LATMON_CELLS : 0);
	return inet_write(latmon->fd, request, sizeof(request));
}

static void look(struct latmon *latmon)
{
	struct pollfd fds[] = { { .fd = latmon->listener, .events = POLLIN }, { .fd = latmon->fd, .events = POLLIN } };

	if (word_load(&latmon->state) == OVER) /* an end can be read again and again */
		fds[1].fd = -1;
	poll(fds, 2, LOOK_MS);
}

static void start_asking(struct latmon *latmon)
{
	while (!word_load(&latmon->left) && clock_now_ns() < latmon->ask_ns)
		sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, latmon->ask_ns);
	if (!word_load(&latmon->left) && ask(latmon, latmon->figures.period_us))
		finish(latmon, false, "latmon vanished");
}

static void end_asking(struct latmon *latmon)
{
	int64_t end_ns = clock_now_ns() + GOODBYE_MS * 1000000LL;

	if (word_load(&latmon->state) == RUNS && ask(latmon, 0))
		finish(latmon, false, "latmon vanished");
	while (word_load(&latmon->state) == RUNS && clock_now_ns() < end_ns) {
		look(latmon);
		hear_figures(latmon);
	}
	if (word_load(&latmon->state) == RUNS)
		finish(latmon, false, "latmon did not send its last figures within 1.5 s");
}

/* Both sides. */

/* It inherits the measuring thread's CPU, and before Linux 2.6.32 its policy. */
static void step_aside(void)
{
	struct cpus cpus;

	prctl(PR_SET_NAME, "rtproof-latmon", 0, 0, 0);
	sys_set_policy(0, POLICY_OTHER, 0);
	if (cpus_get_affinity(getpid(), &cpus) == 0)
		cpus_set_affinity(0, &cpus);
}

static void *latmon_main(void *argument)
{
	struct latmon *latmon = argument;

	step_aside();
	if (!latmon->listens)
		start_asking(latmon);
	while (!word_load(&latmon->left)) {
		look(latmon);
		latmon->listens ? serve(latmon) : hear_figures(latmon);
		if (word_load(&latmon->state) == OVER && !word_load(&latmon->left))
			pthread_kill(latmon->measuring, WORKER_STOP_SIGNAL);
	}
	latmon->listens ? end_serving(latmon) : end_asking(latmon);
	hang_up(latmon);
	return NULL;
}

static int listen_there(struct latmon *latmon)
{
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	latmon->listener = inet_bind(fd, &latmon->address);
	return latmon->listener < 0 ? latmon->listener : 0;
}

static int connect_there(struct latmon *latmon)
{
	latmon->fd = inet_connect(&latmon->address, CONNECT_MS);
	if (latmon->fd < 0)
		return latmon->fd;
	inet_limit(latmon->fd, SEND_MS);
	latmon->state = RUNS;
	latmon->figures.n_cells = LATMON_CELLS;
	return 0;
}

int latmon_open(struct latmon **made, const struct latmon_order *order, char *why, size_t room)
{
	struct latmon *latmon = calloc(1, sizeof(*latmon));
	char text[ADDRESS_ROOM];

	if (!latmon)
		return -ENOMEM;
	latmon->listens = order->listens;
	latmon->address = order->address;
	latmon->ask_ns = order->ask_ns;
	latmon->measuring = pthread_self();
	latmon->listener = latmon->fd = -1;
	latmon->figures.period_us = order->period_us;
	int err = latmon->listens ? listen_there(latmon) : connect_there(latmon);

	write_address(&latmon->address, text);
	if (err) {
		snprintf(why, room, latmon->listens ? "the agent can't listen at %s: %s" : "no latmon answers at %s: %s", text, strerror(-err));
	} else {
		err = thread_start(&latmon->thread, latmon_main, latmon);
	}
	if (!err) {
		*made = latmon;
		return 0;
	}
	hang_up(latmon);
	if (latmon->listener >= 0)
		close(latmon->listener);
	free(latmon);
	return err;
}

bool latmon_runs(struct latmon *latmon)
{
	return word_load(&latmon->state) == RUNS;
}

bool latmon_over(struct latmon *latmon, char *why, size_t room)
{
	if (word_load(&latmon->state) != OVER)
		return false;
	snprintf(why, room, "%s", latmon->outcome);
	return true;
}

void latmon_put(struct latmon *latmon, int64_t answer_ns, bool answered)
{
	uint32_t head = latmon->head;

	if (head - word_load(&latmon->tail) >= QUEUE) {
		latmon->dropped++;
		return;
	}
	latmon->queue[head % QUEUE] = !answered ? LATMON_UNANSWERED : answer_ns > INT32_MAX ? INT32_MAX : (uint32_t)answer_ns;
	word_store(&latmon->head, head + 1);
}

void latmon_leave(struct latmon *latmon)
{
	word_store(&latmon->left, 1);
}

void latmon_end(struct latmon *latmon)
{
	thread_end(latmon->thread, &latmon->left);
	if (latmon->listener >= 0)
		close(latmon->listener);
}

char *latmon_account(const struct latmon *latmon, size_t *length)
{
	char *text = malloc(ACCOUNT_MOST), address[ADDRESS_ROOM];

	if (!text)
		return NULL;
	write_address(&latmon->address, address);
	*length = (size_t)snprintf(text, ACCOUNT_MOST,
		"role %s\naddress %s\nclient %s\noutcome %s\nperiod_us %u\nbulks %u\nsamples %llu\nsum_ns %lld\nmin_ns %d\nmax_ns %d\n"
		"overruns %llu\nsent %llu\nrefused %u\ndropped %u\nstrange %u\n",
		latmon->listens ? "latmon" : "latmus", address, latmon->peer, latmon->outcome, latmon->figures.period_us, latmon->bulks,
		(unsigned long long)latmon->samples, (long long)latmon->sum_ns, latmon->min_ns, latmon->max_ns,
		(unsigned long long)latmon->overruns, (unsigned long long)latmon->sent, latmon->refused, latmon->dropped,
		latmon->strange);
	for (uint32_t i = 0; latmon->has_cells && i < latmon->figures.n_cells; i++)
		if (latmon->figures.cells[i])
			*length += (size_t)snprintf(text + *length, ACCOUNT_MOST - *length, "cell_%u %u\n", i, latmon->figures.cells[i]);
	return text;
}

void latmon_free(struct latmon *latmon)
{
	free(latmon);
}
