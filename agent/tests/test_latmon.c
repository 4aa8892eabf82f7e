/* SPDX-License-Identifier: Apache-2.0 */
/* latmon's protocol: its bytes and rules, and what becomes of clients and of latmons that do not keep to it. */
#include "system/sys.h"

#include "probes/gpio/latmon.h"
#include "system/clock.h"
#include "system/inet.h"
#include "system/threads.h"

#include "check.h"

#include <string.h>
#include <sys/socket.h>

enum { PERIOD_US = 1000, TIMEOUT_MS = 20000, PORT_TRIES = 100, AT_ONCE = 1000 };

/* What latmus sends: its structures as they go over the wire, in the order of its header file. */
static const uint8_t start[] = { 0, 0, 3, 0xe8, 0, 0, 0, 5 }, stop[8];

static char why[LATMON_WHY];
static struct latmon *latmon;
static struct sockaddr_in address;

static void bulks_have_the_bytes_of_the_description(void)
{
	static const uint8_t expected[] = { 0, 0, 0, 1, 0x80, 0, 0, 2, 0, 0, 0x30, 0x39, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 7, 0, 0, 3, 0xe8 };
	const struct latmon_bulk bulk = { 0x180000002LL, 12345, INT32_MAX, 7, 1000 };
	struct latmon_bulk again;
	uint8_t bytes[LATMON_BULK_BYTES];

	latmon_write_bulk(&bulk, bytes);
	CHECK(!memcmp(bytes, expected, sizeof(expected)));
	latmon_read_bulk(bytes, &again);
	CHECK(again.sum_ns == bulk.sum_ns && again.min_ns == 12345 && again.max_ns == INT32_MAX);
	CHECK(again.overruns == 7 && again.samples == 1000);
	memset(bytes, 0xff, sizeof(bytes));
	latmon_read_bulk(bytes, &again);
	CHECK(again.sum_ns == -1 && again.min_ns == -1 && again.samples == UINT32_MAX);
}

/* A period that has just passed is none that was overrun, and the last cell has what is above all. */
static void answers_are_counted_as_latmon_does(void)
{
	static const uint32_t answers_ns[] = { 999, 1000, 4999, 5000, 1000999, 1001000, 3000000, LATMON_UNANSWERED };
	static const uint32_t cells[] = { 1, 1, 0, 0, 5 };
	struct latmon_figures figures = { .n_cells = 5, .period_us = PERIOD_US };

	for (size_t i = 0; i < sizeof(answers_ns) / sizeof(*answers_ns); i++)
		latmon_count(&figures, answers_ns[i]);
	CHECK(!memcmp(figures.cells, cells, sizeof(cells)));
	CHECK(figures.bulk.samples == 7 && figures.bulk.min_ns == 999 && figures.bulk.max_ns == 3000000);
	CHECK(figures.bulk.sum_ns == 999 + 1000 + 4999 + 5000 + 1000999 + 1001000 + 3000000);
	CHECK(figures.bulk.overruns == 0 + 1 + 2 + 1); /* 1000.999 us: none; 1001: one; 3000: two; without an answer: one */
	figures = (struct latmon_figures){ .period_us = PERIOD_US };
	latmon_count(&figures, 5);
	CHECK(figures.bulk.samples == 1 && !figures.cells[0]);
}

static void requests_that_make_no_sense_are_refused(void)
{
	CHECK(!latmon_refusal(1000, 0, 1000, why, sizeof(why)) && !latmon_refusal(1000000, 1000, 1000000, why, sizeof(why)));
	CHECK(strstr(latmon_refusal(0, 5, 1000, why, sizeof(why)), "a period is 1 to 1000000 us, not 0 us"));
	CHECK(strstr(latmon_refusal(1000001, 5, 1000, why, sizeof(why)), "not 1000001 us"));
	CHECK(strstr(latmon_refusal(UINT32_MAX, 5, 1000, why, sizeof(why)), "not 4294967295 us"));
	CHECK(strstr(latmon_refusal(1000, 1001, 1000, why, sizeof(why)), "1000 cells at most, not 1001"));
	CHECK(strstr(latmon_refusal(1000, UINT32_MAX, 1000, why, sizeof(why)), "not 4294967295"));
	CHECK(strstr(latmon_refusal(500, 5, 1000, why, sizeof(why)), "start it with --period 500us"));
}

static void addresses_may_have_a_port(void)
{
	static const char *const wrong[] = { "", "here", "0.0.0.0", "255.255.255.255", "224.0.0.1", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536",
					     "1.2.3.4:5:6", ":2306", "1.2.3.4:x", "111.111.111.111111111111111" };

	CHECK(latmon_address("192.168.1.2", &address) == 0 && address.sin_port == htons(2306));
	CHECK(latmon_address("192.168.1.2:7", &address) == 0 && address.sin_port == htons(7));
	CHECK(address.sin_addr.s_addr == htonl(0xc0a80102));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK(latmon_address(wrong[i], &address) == -EINVAL);
}

static int open_there(struct latmon **made, bool listens)
{
	const struct latmon_order order = { .address = address, .listens = listens, .period_us = PERIOD_US };

	return latmon_open(made, &order, why, sizeof(why));
}

/* At a port that was free a moment ago. */
static void listen_here(void)
{
	for (int i = 0; i < PORT_TRIES; i++) {
		close(inet_open_here(SOCK_STREAM, &address));
		if (open_there(&latmon, true) == 0)
			return;
	}
	CHECK(!"no port is free");
}

static int connect_here(void)
{
	int fd = inet_connect(&address, TIMEOUT_MS);

	CHECK(fd >= 0);
	inet_limit(fd, TIMEOUT_MS);
	return fd;
}

static int ask(const uint8_t *request)
{
	int fd = connect_here();

	CHECK(inet_write(fd, request, 8) == 0);
	return fd;
}

static void until(bool (*is_so)(void))
{
	int64_t end_ns = clock_now_ns() + TIMEOUT_MS * 1000000LL;

	while (!is_so()) {
		CHECK(clock_now_ns() < end_ns);
		sys_sleep(CLOCK_MONOTONIC, 0, 1000000);
	}
}

static bool runs(void)
{
	return latmon_runs(latmon);
}

static bool over(void)
{
	return latmon_over(latmon, why, sizeof(why));
}

static void expect_bulk(int fd, int64_t sum_ns, int32_t min_ns, int32_t max_ns, uint32_t overruns, uint32_t samples)
{
	uint8_t bytes[LATMON_BULK_BYTES];
	struct latmon_bulk bulk;

	CHECK(inet_read(fd, bytes, sizeof(bytes)) == 0);
	latmon_read_bulk(bytes, &bulk);
	CHECK(bulk.sum_ns == sum_ns && bulk.min_ns == min_ns && bulk.max_ns == max_ns);
	CHECK(bulk.overruns == overruns && bulk.samples == samples);
}

static void expect_hang_up(int fd)
{
	uint8_t byte;

	CHECK(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
}

/* Ends it; whether its account has all these lines. */
static void expect_account(const char *const *lines, int n)
{
	size_t length = 0;

	latmon_end(latmon);
	char *text = latmon_account(latmon, &length);

	CHECK(text && strlen(text) == length);
	for (int i = 0; i < n; i++) {
		if (!strstr(text, lines[i]))
			printf("%s", text);
		CHECK(strstr(text, lines[i]));
	}
	free(text);
	latmon_free(latmon);
	CHECK(inet_connect(&address, TIMEOUT_MS) == -ECONNREFUSED);
}

#define EXPECT_ACCOUNT(...) expect_account((const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* As latmus does it: start, bulks of a second each, stop, the rest, a bulk without samples, the cells. */
static void a_client_gets_its_figures(void)
{
	static const uint8_t cells[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0xe8, 0, 0, 0, 2 };
	uint8_t got[sizeof(cells)];

	listen_here();
	CHECK(!latmon_runs(latmon) && !over());
	int fd = ask(start);

	until(runs);
	for (int i = 0; i < 1000; i++)
		latmon_put(latmon, 3000 + i % 2, true);
	expect_bulk(fd, 3000 * 1000 + 500, 3000, 3001, 0, 1000);
	latmon_put(latmon, 2500001, true);
	latmon_put(latmon, 2999, true);
	latmon_put(latmon, 7, false);
	latmon_put(latmon, 1LL << 40, true);
	CHECK(inet_write(fd, stop, 3) == 0); /* in two pieces */
	sys_sleep(CLOCK_MONOTONIC, 0, 50000000);
	CHECK(!over() && inet_write(fd, stop + 3, 5) == 0);
	until(over);
	CHECK(!strcmp(why, "the client said stop"));
	CHECK(inet_write(fd, stop, sizeof(stop)) == 0); /* more than was asked for */
	latmon_put(latmon, 20, false); /* an edge that had no answer at the end */
	latmon_end(latmon);
	expect_bulk(fd, 2500001LL + 2999 + INT32_MAX, 2999, INT32_MAX, 2 + 1 + 1 + (INT32_MAX / 1000 - 1) / PERIOD_US, 3);
	expect_bulk(fd, 0, 0, 0, 0, 0);
	CHECK(inet_read(fd, got, sizeof(got)) == 0 && !memcmp(got, cells, sizeof(cells)));
	CHECK(recv(fd, got, 1, 0) == 0); /* no reset, which could take figures away */
	close(fd);

	size_t length;
	char *text = latmon_account(latmon, &length);

	CHECK(strstr(text, "role latmon\n") && strstr(text, "outcome the client said stop\n") && strstr(text, "samples 1003\n"));
	CHECK(strstr(text, "sent 1003\n") && strstr(text, "bulks 2\n") && strstr(text, "dropped 0\n") && strstr(text, "refused 0\n"));
	CHECK(strstr(text, "min_ns 2999\n") && strstr(text, "cell_3 1000\n") && strstr(text, "cell_4 2\n") && !strstr(text, "cell_0"));
	free(text);
	latmon_free(latmon);
}

/* The end is the run's. What is left over has no bulk of its own, so the last one has it. */
static void a_run_that_ends_first_says_goodbye(void)
{
	static const uint8_t none[20];
	uint8_t cells[sizeof(none)];

	listen_here();
	int fd = ask(start);

	until(runs);
	latmon_put(latmon, 0, false);
	latmon_end(latmon);
	expect_bulk(fd, 0, 0, 0, 1, 0);
	CHECK(inet_read(fd, cells, sizeof(cells)) == 0 && !memcmp(cells, none, sizeof(none)));
	expect_hang_up(fd);
	latmon_free(latmon);
}

static void clients_that_make_no_sense_are_sent_away_and_the_next_one_is_served(void)
{
	static const uint8_t wrong[][8] = { { 0 }, { 0, 0, 1, 0xf4 }, { 0, 0, 3, 0xe8, 0, 0, 3, 0xe9 }, "GET / H", { 0xff, 0xff, 0xff, 0xff } };

	listen_here();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		expect_hang_up(ask(wrong[i]));
	close(connect_here()); /* a look whether the port is open */
	int fd = ask(start);

	until(runs);
	expect_hang_up(ask(start)); /* a second one */
	CHECK(runs() && inet_write(fd, stop, 8) == 0);
	until(over);
	EXPECT_ACCOUNT("refused 7\n", "outcome the client said stop\n", "samples 0\n");
	close(fd);
}

static void a_client_that_vanishes_ends_it(void)
{
	listen_here();
	close(ask(start));
	until(over);
	CHECK(!strcmp(why, "the client vanished without a stop"));
	latmon_put(latmon, 5000, true);
	EXPECT_ACCOUNT("samples 1\n", "sent 0\n", "cell_4 1\n");
}

static void a_client_that_starts_twice_ends_it(void)
{
	listen_here();
	int fd = ask(start);

	until(runs);
	CHECK(inet_write(fd, start, 8) == 0);
	until(over);
	CHECK(!strcmp(why, "the client asked for edges again without a stop"));
	expect_hang_up(fd);
	EXPECT_ACCOUNT("samples 0\n");
}

/* Nobody takes them out while this thread does not let the other one run long enough: what has no room is counted. */
static void answers_without_room_are_counted(void)
{
	uint64_t given = 0;

	listen_here();
	for (; given < 20000; given++) /* before a client came nobody empties the queue */
		latmon_put(latmon, 1000, true);
	EXPECT_ACCOUNT("outcome no client asked for edges\n", "dropped 3616\n");
}

static void a_port_that_is_taken_is_told(void)
{
	struct latmon *other;

	listen_here();
	CHECK(open_there(&other, true) == -EADDRINUSE);
	CHECK(strstr(why, "the agent can't listen at 127.0.0.1:") && strstr(why, strerror(EADDRINUSE)));
	EXPECT_ACCOUNT("outcome no client asked for edges\n");
	CHECK(open_there(&other, false) == -ECONNREFUSED);
	CHECK(strstr(why, "no latmon answers at 127.0.0.1:") && strstr(why, strerror(ECONNREFUSED)));
}

/* This side asks; the other is played. */

static int listener;

static int be_asked(void)
{
	uint8_t request[8];
	static const uint8_t expected[] = { 0, 0, 3, 0xe8, 0, 0, 3, 0xe8 };

	listener = inet_open_here(SOCK_STREAM, &address);
	CHECK(listener >= 0 && open_there(&latmon, false) == 0);
	int fd = accept(listener, NULL, NULL);

	CHECK(fd >= 0 && latmon_runs(latmon));
	inet_limit(fd, TIMEOUT_MS);
	CHECK(inet_read(fd, request, sizeof(request)) == 0 && !memcmp(request, expected, sizeof(expected)));
	close(listener);
	return fd;
}

static void tell(int fd, struct latmon_bulk bulk)
{
	uint8_t bytes[LATMON_BULK_BYTES];

	latmon_write_bulk(&bulk, bytes);
	CHECK(inet_write(fd, bytes, 11) == 0 && inet_write(fd, bytes + 11, sizeof(bytes) - 11) == 0);
}

static void figures_of_a_latmon_are_kept(void)
{
	uint8_t cells[4 * LATMON_CELLS] = { 0, 0, 0, 3 };
	int fd = be_asked();

	cells[sizeof(cells) - 1] = 4;
	tell(fd, (struct latmon_bulk){ 6000, 1000, 3000, 1, 3 });
	tell(fd, (struct latmon_bulk){ 1LL << 33, INT32_MAX, INT32_MAX, 9, 4 }); /* its sum is one that cannot be */
	tell(fd, (struct latmon_bulk){ 0, -1, 0, 2, 0 });
	CHECK(inet_write(fd, cells, sizeof(cells)) == 0);
	until(over);
	CHECK(!strcmp(why, "latmon ended before the run"));
	EXPECT_ACCOUNT("role latmus\n", "samples 7\n", "min_ns 1000\n", "max_ns 2147483647\n", "overruns 12\n", "sum_ns 8589940592\n",
		       "strange 1\n", "bulks 2\n", "cell_0 3\n", "cell_999 4\n");
	close(fd);
}

/* It is told to stop, and says nothing more. */
static void a_latmon_that_is_silent_at_the_end_is_left(void)
{
	uint8_t request[8];
	int fd = be_asked();
	int64_t begin_ns = clock_now_ns();

	EXPECT_ACCOUNT("outcome latmon did not send its last figures within 1.5 s\n", "samples 0\n", "strange 0\n");
	CHECK(clock_now_ns() - begin_ns >= 1500000000);
	CHECK(inet_read(fd, request, sizeof(request)) == 0 && !memcmp(request, stop, sizeof(stop)));
	close(fd);
}

static void a_latmon_that_vanishes_ends_it(void)
{
	close(be_asked());
	until(over);
	CHECK(!strcmp(why, "latmon hung up without a figure: has it another period or client?"));
	EXPECT_ACCOUNT("samples 0\n");

	int fd = be_asked();

	tell(fd, (struct latmon_bulk){ 6000, 1000, 3000, 1, 3 });
	close(fd);
	until(over);
	CHECK(!strcmp(why, "latmon vanished"));
	EXPECT_ACCOUNT("outcome latmon vanished\n", "samples 3\n");
}

static uint32_t enough;

/* More at once than the other side reads at once, so that there is always more. */
static bool send_many(int fd)
{
	const struct latmon_bulk bulk = { INT64_MAX, INT32_MIN, INT32_MAX, UINT32_MAX, UINT32_MAX };
	uint8_t bytes[AT_ONCE * LATMON_BULK_BYTES];

	for (size_t i = 0; i < AT_ONCE; i++)
		latmon_write_bulk(&bulk, bytes + i * LATMON_BULK_BYTES);
	return send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0;
}

static void *send_without_end(void *fd)
{
	while (!word_load(&enough) && send_many(*(int *)fd))
		;
	return NULL;
}

/* Its figures add up to more than any number holds, and there is always one more when the run ends. */
static void a_latmon_that_sends_without_end_is_left(void)
{
	pthread_t sender;
	int fd = be_asked();

	CHECK(send_many(fd));
	CHECK(pthread_create(&sender, NULL, send_without_end, &fd) == 0);
	EXPECT_ACCOUNT("outcome latmon did not send its last figures within 1.5 s\n", "max_ns 2147483647\n", "min_ns -2147483648\n");
	word_store(&enough, 1);
	CHECK(pthread_join(sender, NULL) == 0);
	close(fd);
}

static void nudge(int signal)
{
	(void)signal;
}

int main(void)
{
	const struct sigaction wake = { .sa_handler = nudge };

	CHECK(sigaction(WORKER_STOP_SIGNAL, &wake, NULL) == 0);
	bulks_have_the_bytes_of_the_description();
	answers_are_counted_as_latmon_does();
	requests_that_make_no_sense_are_refused();
	addresses_may_have_a_port();
	a_client_gets_its_figures();
	a_run_that_ends_first_says_goodbye();
	clients_that_make_no_sense_are_sent_away_and_the_next_one_is_served();
	a_client_that_vanishes_ends_it();
	a_client_that_starts_twice_ends_it();
	answers_without_room_are_counted();
	a_port_that_is_taken_is_told();
	figures_of_a_latmon_are_kept();
	a_latmon_that_is_silent_at_the_end_is_left();
	a_latmon_that_vanishes_ends_it();
	a_latmon_that_sends_without_end_is_left();
	return EXIT_SUCCESS;
}
