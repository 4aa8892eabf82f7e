/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ping -f`: echo requests as fast as they are answered, or 100 a second when they are not. Alone, they cross a cable from
 * one network namespace to another, whose kernel, the same one, answers in its softirq; no packet leaves this machine. With
 * `to`, they flood the system under test from another host. There, `from` stands for that flood: it sends nothing, and counts
 * the requests that arrive.
 */
#include "system/sys.h"

#include "loads/common/network.h"
#include "loads/load.h"
#include "system/clock.h"
#include "system/text.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { WORKERS, TO, BYTES, FROM, BY_CABLE };
enum { BYTES_MOST = 1400, IP_HEADER_MOST = 60, WINDOW = 8, PATIENCE_MS = 10, TRIAL_MS = 3000, SILENCES = 1500 / PATIENCE_MS };
enum { ECHO_REPLY = 0, ECHO_REQUEST = 8, FILTER_LEVEL = 255, FILTER = 1 };

static const struct load_option options[] = {
	{ "workers", "processes (default: 1)", 1, 256, 1 },
	{ "to", "IPv4 address of the host to flood (default: this machine, by a network of its own)", 1, 15, LOAD_TEXT },
	{ "bytes", "of data in a packet (default: 56, that of ping)", 0, BYTES_MOST, 56 },
	{ "from", "IPv4 address of the host that floods this machine; what arrives here is counted", 1, 15, LOAD_TEXT },
	{ NULL, NULL, 0, 0, 0 },
};

struct echo {
	uint8_t type, code;
	uint16_t sum, id, number;
	char data[BYTES_MOST];
};

struct flood {
	int fd;
	struct sockaddr_in to;
	size_t bytes;
	struct echo echo;
};

/* RFC 1071; the data are zero. */
static uint16_t sum_of(const struct echo *echo)
{
	uint32_t sum = (uint32_t)(htons(ECHO_REQUEST << 8)) + echo->id + echo->number;

	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

static int send_one(struct flood *flood)
{
	flood->echo.number++;
	flood->echo.sum = 0;
	flood->echo.sum = sum_of(&flood->echo);
	return sendto(flood->fd, &flood->echo, flood->bytes, MSG_DONTWAIT, (struct sockaddr *)&flood->to, sizeof(flood->to)) < 0 ?
		       -errno :
		       0;
}

/* A raw socket hears the answers to everybody's echo requests. */
static bool is_ours(const struct flood *flood, const char *packet, ssize_t n)
{
	struct echo echo;
	int header = (packet[0] & 15) * 4;

	if (n < header + (ssize_t)offsetof(struct echo, data))
		return false;
	memcpy(&echo, packet + header, offsetof(struct echo, data));
	return echo.type == ECHO_REPLY && echo.id == flood->echo.id;
}

/* One answer: 1, or 0 if there is none in that time, or -errno. */
static int receive_one(struct flood *flood, int timeout_ms)
{
	char packet[IP_HEADER_MOST + sizeof(struct echo)];
	struct pollfd wait = { .fd = flood->fd, .events = POLLIN };

	for (;;) {
		ssize_t n = recv(flood->fd, packet, sizeof(packet), MSG_DONTWAIT);

		if (n > 0 && is_ours(flood, packet, n))
			return 1;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0 && poll(&wait, 1, timeout_ms) <= 0)
			return 0;
	}
}

static int open_socket(void)
{
	const uint32_t unwanted = ~(1U << ECHO_REPLY);
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);

	if (fd >= 0)
		setsockopt(fd, FILTER_LEVEL, FILTER, &unwanted, sizeof(unwanted));
	return fd < 0 ? -errno : fd;
}

static int open_flood(struct flood *flood, uint32_t host, const struct load_order *order)
{
	memset(flood, 0, sizeof(*flood));
	flood->fd = open_socket();
	flood->to = inet_address(host, 0);
	flood->bytes = offsetof(struct echo, data) + (size_t)order->values[BYTES];
	flood->echo.type = ECHO_REQUEST;
	flood->echo.id = (uint16_t)getpid();
	return flood->fd < 0 ? flood->fd : 0;
}

static const char *try_host(const struct load_order *order, uint32_t host)
{
	static char why[LOAD_WHY];
	struct flood flood;
	int err = open_flood(&flood, host, order);

	if (err)
		return "raw sockets are not allowed here: run it as root or with CAP_NET_RAW";
	err = send_one(&flood);
	if (!err)
		err = receive_one(&flood, TRIAL_MS);
	close(flood.fd);
	if (err > 0)
		return NULL;
	snprintf(why, sizeof(why), "%s does not answer an echo request: %s", order->texts[TO] ? order->texts[TO] : "127.0.0.1",
		 strerror(err ? -err : ETIMEDOUT));
	return why;
}

enum { SNMP_MOST = 8192, LOOK_NS = 100 * 1000 * 1000 };
/* The host may begin late and pause. Silence for longer ends the load, and the record says when. */
#define SILENT_NS (10 * NS_PER_SECOND)

/* The word of a text's line at this place, 0 being the first; NULL if the line has fewer. */
static const char *word_at(const char *line, int place)
{
	const char *end = line + strcspn(line, "\n");

	for (; place && line < end; place--)
		line += strcspn(line, " \n") + 1;
	return place || line >= end ? NULL : line;
}

/* How many echo requests this network has had, modulo 2^32: InEchos of the two lines "Icmp:". 0 or -errno. */
static int requests_so_far(uint32_t *count)
{
	char text[SNMP_MOST];
	int n = text_read_file("/proc/net/snmp", text, sizeof(text) - 1);

	if (n < 0)
		return n;
	text[n] = '\0';
	const char *names = strstr(text, "Icmp: "), *name, *values = names ? strstr(names + 1, "Icmp: ") : NULL;

	for (int place = 1; values && (name = word_at(names, place)); place++) {
		const char *value = word_at(values, place);

		if (!strncmp(name, "InEchos ", 8) && value) {
			*count = (uint32_t)strtoull(value, NULL, 10);
			return 0;
		}
	}
	return -ENOENT;
}

/* Waits until requests have come since the count, and counts them in: how many, 0 if none came in time, or -errno. */
static int64_t hear_some(uint32_t *count, int64_t patience_ns)
{
	int64_t until_ns = clock_now_ns() + patience_ns;
	uint32_t before = *count;
	int err = 0;

	while (!err && *count == before && clock_now_ns() < until_ns) {
		sys_sleep(CLOCK_MONOTONIC, 0, LOOK_NS);
		err = requests_so_far(count);
	}
	return err ? err : (int64_t)(uint32_t)(*count - before);
}

static int count_requests(struct load_slot *slot)
{
	uint32_t count;
	int64_t heard = requests_so_far(&count);

	while (heard >= 0 && (heard = hear_some(&count, SILENT_NS)) > 0)
		slot->work += (uint32_t)heard;
	return heard < 0 ? (int)heard : -ETIMEDOUT;
}

static const char *hear(const struct load_order *order)
{
	static char why[LOAD_WHY];
	uint32_t host, count;

	if (order->texts[TO] || inet_parse(order->texts[FROM], &host))
		return "from takes the IPv4 address of one host, and goes without to";
	if (!requests_so_far(&count) && hear_some(&count, TRIAL_MS * (NS_PER_SECOND / 1000)) > 0)
		return NULL;
	snprintf(why, sizeof(why), "no echo request arrives: start 'rtproof-agent load pingflood:to=THIS-MACHINE' on %s first",
		 order->texts[FROM]);
	return why;
}

static const char *unsupported(const struct load_order *order)
{
	uint32_t host = INET_HERE;

	if (order->texts[FROM])
		return hear(order);
	if (order->texts[TO] && inet_parse(order->texts[TO], &host))
		return "to takes the IPv4 address of one host, such as 192.168.1.2";
	return order->texts[TO] || netns_trial() ? try_host(order, host) : NULL;
}

static int prepare(struct load_order *order)
{
	static char from[32];

	snprintf(from, sizeof(from), "from %s", order->texts[FROM] ? order->texts[FROM] : "");
	order->note = order->texts[FROM] ? from : order->note;
	order->values[BY_CABLE] = order->texts[TO] || order->texts[FROM] ? 0 : netns_choose(order);
	return 0;
}

static bool is_passing(int err)
{
	return err == -ENOBUFS || err == -EAGAIN || err == -EHOSTUNREACH || err == -EHOSTDOWN || err == -ENETUNREACH;
}

/* What is not answered in time is lost. Silence is counted, not timed: who did not run meanwhile has missed nothing. */
static int run_flood(struct flood *flood, const struct load_order *order, struct load_slot *slot)
{
	int err = 0, under_way = 0, silences = 0;

	while (err >= 0 && (silences < SILENCES || order->patient)) {
		for (; under_way < WINDOW && !err; under_way++)
			err = send_one(flood);
		if (err && !is_passing(err))
			break;
		err = receive_one(flood, PATIENCE_MS);
		slot->work += err > 0;
		silences = err > 0 ? 0 : silences + 1;
		under_way = err > 0 ? under_way - 1 : 0;
		if (is_passing(err) || err > 0)
			err = 0;
	}
	snprintf(order->why, LOAD_WHY, "%s does not answer echo requests any more: %s",
		 order->texts[TO] ? order->texts[TO] : "the other network namespace", strerror(err ? -err : ETIMEDOUT));
	return err ? err : -ETIMEDOUT;
}

static int flood_to(const struct load_order *order, uint32_t host, struct load_slot *slot)
{
	static struct flood flood;
	int err = open_flood(&flood, host, order);

	return err ? err : run_flood(&flood, order, slot);
}

static int run(struct load_order *order)
{
	uint32_t host = INET_HERE;
	int err = 0;

	if (order->texts[FROM]) {
		err = count_requests(&order->slots[0]);
		snprintf(order->why, LOAD_WHY, "%s floods this machine no longer: %s", order->texts[FROM], strerror(-err));
		return err;
	}
	if (order->values[BY_CABLE] > 0) {
		host = NETNS_FAR;
		err = netns_cable(SOCK_DGRAM);
	} else if (order->texts[TO]) {
		err = inet_parse(order->texts[TO], &host);
	}
	for (int64_t i = 0; i < order->values[WORKERS] && err >= 0; i++) {
		pid_t pid = load_spawn();

		if (pid == 0)
			_exit(-flood_to(order, host, &order->slots[i]));
		err = pid < 0 ? pid : 0;
	}
	return err < 0 ? err : load_wait_for_children();
}

static const char *unit_of(const struct load_order *order)
{
	return order->texts[FROM] ? "requests" : "replies";
}

const struct load load_pingflood = {
	.name = "pingflood",
	.help = "ICMP echo requests as fast as they are answered, between two network namespaces or to another host",
	.unit = "replies",
	.unit_of = unit_of,
	.options = options,
	.unsupported = unsupported,
	.prepare = prepare,
	.run = run,
};
