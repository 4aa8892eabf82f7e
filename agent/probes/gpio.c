/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bootlin's response test on GPIO lines: an edge comes in by one line, a task answers it on another. `respond` is the system under
 * test; `generate` is the other board; `wire` is both in one, with a wire from its output to its input.
 *
 * The edge's time is that of the kernel's interrupt handler (of PREEMPT_RT too: gpiolib keeps that part out of threads). How late
 * the handler was only the generator sees. A generator on the responder's own CPU would spare it every load: where that program
 * runs, the scheduler has just been free. So loads are seen with edges from outside only.
 *
 * `watch` answers nothing: it times the pulses that a loop elsewhere gives in each of its runs, by a clock that is not the loop's.
 *
 * `latmon` and `latmus` are generator and responder with the protocol of these programs, so that a board with one of them can be
 * the other side.
 */
#include "system/sys.h"

#include "system/clock.h"
#include "probes/gpio/latmon.h"
#include "probes/gpio/lines.h"
#include "probes/gpio/pulses.h"
#include "probes/probe.h"
#include "probes/common/stimulus.h"
#include "system/text.h"
#include "system/threads.h"
#include "measure/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHIP, IN, OUT, BACK, EDGE, LISTEN, PEER, PATTERN };
enum { LINE_MOST = 65535, ACCOUNT_MOST = 512 };

enum { CALL_MS = 50, WIRE_TRIES = 3, CONTACT_TRIES = 100 };

/* How long an answer is waited for. */
#define PATIENCE_NS (5 * NS_PER_SECOND)
#define LATMON_PATIENCE_NS NS_PER_SECOND

/* Between two looks whether a client has come. */
#define PAUSE_NS 10000000

/* What a method does, and its fields: with sysfs, which does not tell when an edge was, there are fewer. */
struct role {
	struct method method;
	bool gives_edges, own_wire, watches;
	bool by_protocol; /* of latmon: edges of one kind, answers that fall */
	const struct role *by_sysfs;
};

struct response {
	const struct role *role;
	struct gpio gpio;
	struct stimulus stimulus;
	struct pulses pulses;  /* watch */
	bool both, level;      /* respond: of the line that is driven */
	bool cut_off;          /* the last edge had no answer when the run ended, before an answer was too late */
	uint64_t edges, lost;  /* respond: seen; those that the kernel lost */
	struct latmon *latmon; /* by protocol */
	int64_t from_ns;       /* edges before are the warm-up's */
	uint64_t seed, random; /* pattern: what it begins with, and its state; a seed of 0: none */
	int64_t apart_ns;      /* pattern: from the due time to the next edge */
};

static const char *unsupported(void)
{
	if (gpio_has_chips() || gpio_has_sysfs())
		return NULL;
	return "there are neither GPIO chips (/dev/gpiochip*) nor GPIO numbers (/sys/class/gpio)";
}

static const char *const respond_fields[] = { "task", "output", NULL };
static const char *const answer_fields[] = { "answer", NULL };
static const char *const wire_fields[] = { "edge", "task", NULL };

static const struct role respond_by_sysfs = {
	.method = { .name = "respond_sysfs",
		    .help = "respond without the edge's time: from the task's first instruction to the output",
		    .external = true, .from_outside = true, .single = true, .no_timer = true, .fields = answer_fields },
};
static const struct role respond = {
	.method = { .name = "respond",
		    .help = "answer each edge on `in` by giving `out` its level (edge=rising, falling: by changing it); --period is "
			    "the generator's; sysfs has no times of edges: with it only from the task to the output",
		    .external = true, .from_outside = true, .single = true, .no_timer = true, .fields = respond_fields,
		    .unsupported = unsupported },
	.by_sysfs = &respond_by_sysfs,
};
static const struct role generate_by_pattern = {
	.method = { .name = "generate_pattern",
		    .help = "generate, with edges that are unevenly apart, each with its time",
		    .external = true, .exact = true, .single = true, .no_timer = true },
	.gives_edges = true,
};
static const struct role generate = {
	.method = { .name = "generate",
		    .help = "for the second board: from an edge on `out` at each due time to the first board's answer (respond) on `in`",
		    .on_grid = true, .single = true, .no_timer = true, .unsupported = unsupported },
	.gives_edges = true,
};
static const struct role wire_by_sysfs = {
	.method = { .name = "wire_sysfs",
		    .help = "wire without the edge's time",
		    .on_grid = true, .single = true, .no_timer = true },
	.gives_edges = true, .own_wire = true,
};
static const struct role wire = {
	.method = { .name = "wire",
		    .help = "one board with a wire: from an edge on `out` at each due time until `in` wakes the thread; the shortest way "
			    "only, since no load runs on the thread's CPU at that moment",
		    .on_grid = true, .single = true, .no_timer = true, .fields = wire_fields, .unsupported = unsupported },
	.gives_edges = true, .own_wire = true, .by_sysfs = &wire_by_sysfs,
};

static const char *const watch_fields[] = { "length", "period", NULL };
static const struct role watch = {
	.method = { .name = "watch",
		    .help = "time the pulses of a loop elsewhere, such as \"work active\", on `in`: how long each is, and from its start to the "
			    "next; --period is the loop's; edge=falling: they are low; no `out`",
		    .external = true, .from_outside = true, .exact = true, .loop = true, .single = true, .no_timer = true,
		    .fields = watch_fields, .unsupported = unsupported },
	.watches = true,
};

static const struct role latmon_role = {
	.method = { .name = "latmon",
		    .help = "generate for a client that speaks latmon's protocol, such as latmus of EVL: listens at listen=, gives edges while "
			    "the client asks for them at the run's --period, and ends with it; answers fall",
		    .external = true, .from_outside = true, .single = true, .in_us = true, .no_timer = true, .unsupported = unsupported },
	.gives_edges = true, .by_protocol = true,
};
static const struct role latmus_by_sysfs = {
	.method = { .name = "latmus_sysfs",
		    .help = "latmus without the edge's time",
		    .external = true, .from_outside = true, .single = true, .in_us = true, .no_timer = true, .fields = answer_fields },
	.by_protocol = true,
};
static const struct role latmus = {
	.method = { .name = "latmus",
		    .help = "respond to a board with latmon at peer=, which is asked for edges at --period, and whose figures are kept beside "
			    "ours; answers fall",
		    .external = true, .from_outside = true, .single = true, .in_us = true, .no_timer = true, .fields = respond_fields,
		    .unsupported = unsupported },
	.by_protocol = true, .by_sysfs = &latmus_by_sysfs,
};

static const struct method *const methods[] = { &respond.method, &generate.method, &wire.method, &watch.method,
						&latmon_role.method, &latmus.method, NULL };

static const struct probe_option options[] = {
	{ "chip", "the lines' chip: its number, label or /dev/gpiochipN; with back=sysfs none" },
	{ "in", "input line of edges (with back=sysfs its number in the whole system)" },
	{ "out", "output line (the same)" },
	{ "back", "the kernel's interface: v2, v1 or sysfs (the newest that is there)" },
	{ "edge", "which edges count: both, rising or falling (both; of latmon and latmus falling)" },
	{ "listen", "latmon: this machine's IPv4 address to listen at, and maybe :PORT (127.0.0.1:2306)" },
	{ "peer", "latmus: the other board's IPv4 address, and maybe :PORT (2306)" },
	{ "pattern", "yes, with generate: edges unevenly apart, and the record has the time of each (no)" },
	{ NULL, NULL },
};

static int index_of(const char *word, const char *const *words, int n)
{
	int i = 0;

	while (i < n && strcmp(words[i], word))
		i++;
	return i < n ? i : -1;
}

static int read_back(const char *text)
{
	for (int i = GPIO_AUTO; text && i <= GPIO_SYSFS; i++)
		if (!strcmp(gpio_interface_name((enum gpio_interface)i), text))
			return i;
	return text ? -1 : GPIO_AUTO;
}

static int read_edge(const struct role *role, const char *text)
{
	static const char *const edges[] = { "", "rising", "falling", "both" };

	if (!text)
		return role->by_protocol ? GPIO_FALLING : role->watches ? GPIO_RISING : GPIO_BOTH;
	return index_of(text, edges, role->by_protocol || role->watches ? 3 : 4);
}

/* The method is the first member of its role. */
static const struct role *role_of(const struct method *method)
{
	return (const struct role *)(const void *)method;
}

/* For the method that drives no line. Which of the options makes no sense, or NULL. */
static const char *read_watched(const char *const *values)
{
	if (values[OUT] || !values[IN])
		return "method watch of probe gpio takes one line, as in gpio:chip=0,in=3";
	return values[CHIP] ? NULL : "method watch of probe gpio needs the times of edges, which sysfs does not tell: say chip=";
}

/* Which of the options makes no sense, or NULL. */
static const char *read_order(const struct role *role, const char *const *values, struct gpio_order *order)
{
	int64_t in, out = -1;
	int edge = read_edge(role, values[EDGE]), back = read_back(values[BACK]);

	if (role->watches && read_watched(values))
		return read_watched(values);
	if (!role->watches && (!values[IN] || !values[OUT]))
		return "probe gpio needs its two lines, as in gpio:chip=0,in=3,out=2";
	if (text_number(values[IN], 0, LINE_MOST, &in) || (values[OUT] && text_number(values[OUT], 0, LINE_MOST, &out)))
		return "lines of probe gpio are whole numbers, as in in=3,out=2";
	if (in == out)
		return "in= and out= of probe gpio must be two lines";
	if (edge <= 0)
		return role->by_protocol || role->watches ? "edge= of methods watch, latmon and latmus is rising or falling" :
							    "edge= of probe gpio is both, rising or falling";
	if (back < 0)
		return "back= of probe gpio is auto, v2, v1 or sysfs";
	if (back == GPIO_SYSFS && values[CHIP])
		return "with back=sysfs lines are numbers of the whole system: leave chip= out";
	if (back != GPIO_SYSFS && !values[CHIP] && gpio_has_chips())
		return "say which chip= the lines are of (see /dev/gpiochip*), or back=sysfs if they are numbers of the whole system";
	*order = (struct gpio_order){ .chip = values[CHIP], .in = (uint32_t)in, .out = (uint32_t)out, .no_out = role->watches,
				      .edges = (enum gpio_edges)edge, .interface = (enum gpio_interface)back };
	return NULL;
}

/* Whom to listen to or to ask. Which of the options makes no sense, or NULL. */
static const char *read_address(const struct role *role, const char *const *values, int64_t period_ns, struct sockaddr_in *address)
{
	const char *text = role->gives_edges ? values[LISTEN] : values[PEER];

	if (values[LISTEN] && !(role->by_protocol && role->gives_edges))
		return "listen= of probe gpio is for --method latmon";
	if (values[PEER] && (!role->by_protocol || role->gives_edges))
		return "peer= of probe gpio is for --method latmus";
	if (!role->by_protocol)
		return NULL;
	if (period_ns > NS_PER_SECOND)
		return "latmon's protocol has periods of 1 s at most";
	if (!text && !role->gives_edges)
		return "method latmus needs the address of the board with latmon, as in peer=192.168.1.2";
	if (!latmon_address(text ? text : "127.0.0.1", address))
		return NULL;
	return role->gives_edges ? "listen= of probe gpio takes one IPv4 address of this machine, as in listen=192.168.1.2 or with :2306" :
				   "peer= of probe gpio takes the IPv4 address of one host, as in peer=192.168.1.2 or with :2306";
}

/* Which of the options makes no sense, or NULL. */
static const char *read_pattern(const struct role *role, const char *const *values)
{
	const char *text = values[PATTERN];

	if (!text || !strcmp(text, "no"))
		return NULL;
	if (strcmp(text, "yes"))
		return "pattern= of probe gpio is yes or no";
	if (role != &generate && role != &generate_by_pattern)
		return "pattern=yes of probe gpio is for --method generate";
	return values[CHIP] ? NULL : "pattern=yes of probe gpio needs the times of edges, which sysfs does not tell: say chip=";
}

static int gpio_check(const struct method *method, const char *const *values, int64_t period_ns, char *why, size_t room)
{
	struct gpio_order order;
	struct sockaddr_in address;
	const char *wrong = read_order(role_of(method), values, &order);

	if (!wrong)
		wrong = read_address(role_of(method), values, period_ns, &address);
	if (!wrong)
		wrong = read_pattern(role_of(method), values);
	if (!wrong)
		return gpio_look(&order, why, room) ? -EINVAL : 0;
	snprintf(why, room, "%s", wrong);
	return -EINVAL;
}

static const struct method *gpio_adapt(const struct method *method, const char *const *values)
{
	const struct role *role = role_of(method);

	if (role == &generate && values[PATTERN] && !strcmp(values[PATTERN], "yes"))
		return &generate_by_pattern.method;
	return role->by_sysfs && !values[CHIP] ? &role->by_sysfs->method : method;
}

/* From the due time to the edge, evenly from 0 to half a period: the generator of Knuth's MMIX, whose high bits are the better ones. */
static void draw_distance(struct response *response)
{
	if (!response->seed)
		return;
	response->random = response->random * 6364136223846793005ULL + 1442695040888963407ULL;
	response->apart_ns = (int64_t)(((response->random >> 32) * ((uint64_t)response->stimulus.period_ns / 2)) >> 32);
}

static int give_edge(struct response *response)
{
	stimulus_give(&response->stimulus, clock_now_ns());
	return gpio_drive(&response->gpio, response->stimulus.level);
}

/* Drives the line and waits for what comes back. 0, -ETIMEDOUT or another -errno. */
static int call_once(struct response *response, bool level)
{
	struct gpio_edge edge;
	int err = gpio_drive(&response->gpio, level);

	if (err || (!response->both && level != response->stimulus.level))
		return err; /* back to where edges are given from: nobody answers that */
	return gpio_wait(&response->gpio, CALL_MS, &edge);
}

/* Until the other side answers, so that it may be started later; a wire is there or not. */
static int make_contact(struct worker *worker)
{
	struct response *response = worker->state;
	const struct gpio_order *order = &response->gpio.order;
	int tries = response->role->own_wire ? WIRE_TRIES : CONTACT_TRIES, err = -ETIMEDOUT;

	for (int i = 0; i < tries && err && !word_load(&worker->stop); i++) {
		err = call_once(response, response->stimulus.level);
		int back = call_once(response, !response->stimulus.level);

		err = err ? err : back;
		if (err && err != -ETIMEDOUT && err != -EINTR)
			return err;
	}
	if (!err)
		return 0;
	snprintf(worker->why, sizeof(worker->why),
		 response->role->own_wire ? "no edge came from line %u to line %u: is there a wire between them?" :
					    "edges on line %u had no answer on line %u: is the other side running, and wired?",
		 order->out, order->in);
	return -ETIMEDOUT;
}

/* Clients and latmons are met once the lines are there. */
static int meet(struct worker *worker)
{
	struct response *response = worker->state;
	struct latmon_order order = { .listens = response->role->gives_edges, .period_us = (uint32_t)(worker->period_ns / 1000),
				      .ask_ns = response->stimulus.due_ns };

	if (!response->role->by_protocol)
		return response->role->gives_edges ? make_contact(worker) : 0;
	if (read_address(response->role, worker->options, worker->period_ns, &order.address))
		return -EINVAL;
	return latmon_open(&response->latmon, &order, worker->why, sizeof(worker->why));
}

/* How the lines are at first, and which edges of the input are taken. */
static void arrange(const struct response *response, struct gpio_order *order)
{
	bool gives_edges = response->role->gives_edges, by_protocol = response->role->by_protocol;

	order->level = gives_edges ? !response->stimulus.level : by_protocol;
	order->echo = response->both && !gives_edges;
	if (by_protocol && gives_edges)
		order->edges = GPIO_FALLING;
	else if (response->role->watches)
		order->edges = GPIO_BOTH; /* a pulse has two ends */
	else if (gives_edges && !response->role->own_wire)
		order->edges = GPIO_BOTH; /* the answer to an edge of one kind is a change */
}

static int gpio_probe_open(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	struct response *response = calloc(1, sizeof(*response));
	struct gpio_order order;

	if (!response)
		return -ENOMEM;
	worker->state = response;
	response->role = role_of(method);
	const char *wrong = read_order(response->role, worker->options, &order);

	if (wrong) { /* chips have come since it was checked */
		snprintf(worker->why, sizeof(worker->why), "%s", wrong);
		return -EINVAL;
	}
	response->both = order.edges == GPIO_BOTH;
	response->from_ns = first_due_ns + worker->warmup_ns / period_ns * period_ns;
	response->stimulus = (struct stimulus){ .due_ns = first_due_ns, .period_ns = period_ns, .both = response->both,
						.level = order.edges != GPIO_FALLING };
	response->pulses = (struct pulses){ .period_ns = period_ns, .level = order.edges != GPIO_FALLING };
	order.period_ns = period_ns;
	if (response->role == &generate_by_pattern)
		response->seed = response->random = (uint64_t)clock_now_ns() | 1;
	draw_distance(response);
	arrange(response, &order);
	int err = gpio_open(&response->gpio, &order, worker->why, sizeof(worker->why));

	return err ? err : meet(worker);
}

static int take_edge(struct response *response, struct activation *activation)
{
	struct gpio_edge edge;
	int err = gpio_wait(&response->gpio, -1, &edge);

	if (err)
		return err;
	response->level = response->both ? edge.level : !response->level && !response->latmon;
	err = gpio_drive(&response->gpio, response->level);
	int64_t done_ns = clock_now_ns(), *value = activation->values;

	if (!err && response->latmon)
		err = gpio_drive(&response->gpio, true);

	activation->due_ns = edge.edge_ns ? edge.edge_ns : edge.woken_ns;
	if (edge.edge_ns)
		*value++ = edge.woken_ns - edge.edge_ns;
	*value = done_ns - activation->due_ns;
	activation->lost = edge.lost;
	activation->missed = 0;
	response->edges++;
	response->lost += edge.lost;
	return err;
}

/* Until a pulse is whole; or -EINTR, also when no edge has come for a moment. The kernel stamps edges, so nobody is in a hurry. */
static int take_pulse(struct response *response, struct activation *activation)
{
	struct gpio_edge edge;
	struct pulse pulse = { 0 };
	int err;

	do {
		err = gpio_wait(&response->gpio, CALL_MS, &edge);
		response->edges += !err;
		response->lost += err ? 0 : edge.lost;
	} while (!err && !pulses_take(&response->pulses, &edge, &pulse));
	*activation = (struct activation){ .due_ns = pulse.start_ns, .values = { pulse.length_ns, pulse.period_ns },
					   .lost = pulse.lost, .missed = pulse.missing };
	return err == -ETIMEDOUT ? -EINTR : err;
}

static void tell_latmon(const struct response *response, const struct activation *activation, bool answered)
{
	if (response->latmon && activation->due_ns >= response->from_ns)
		latmon_put(response->latmon, activation->values[0], answered);
}

/* With a pattern the activation tells when the edge was given, and not when it was due. */
static void end_edge(struct response *response, int64_t value_ns, bool answered, struct activation *activation)
{
	int64_t given_ns = response->stimulus.given_ns;

	stimulus_end(&response->stimulus, value_ns, answered, activation);
	if (response->seed)
		activation->due_ns = given_ns;
	draw_distance(response);
}

static int64_t patience_of(const struct response *response)
{
	return response->latmon ? LATMON_PATIENCE_NS : PATIENCE_NS;
}

/* What is known is that the answer takes longer. */
static int give_up(struct worker *worker, struct activation *activation)
{
	struct response *response = worker->state;
	int64_t waited_ns = clock_now_ns() - response->stimulus.given_ns;

	response->cut_off = waited_ns < patience_of(response);
	for (int i = 0; i < FIELDS_MOST; i++)
		activation->values[i] = waited_ns;
	end_edge(response, waited_ns, false, activation);
	tell_latmon(response, activation, false);
	return gpio_drive(&response->gpio, !response->stimulus.level);
}

/* Until an answer comes: 0. The thread shall stop, or it has been too long: 1. Else -errno. */
static int await_answer(struct worker *worker, struct gpio_edge *edge)
{
	struct response *response = worker->state;
	int err;

	do {
		int64_t left_ns = response->stimulus.given_ns + patience_of(response) - clock_now_ns();

		if (word_load(&worker->stop) || left_ns <= 0)
			return 1;
		err = gpio_wait(&response->gpio, (int)(left_ns / 1000000 + 1), edge);
	} while (err == -ETIMEDOUT || (!err && !stimulus_takes(&response->stimulus, edge->edge_ns, edge->level)));
	return err;
}

static int take_answer(struct worker *worker, struct activation *activation)
{
	struct response *response = worker->state;
	struct stimulus *stimulus = &response->stimulus;
	int64_t *value = activation->values;
	struct gpio_edge edge;
	int err = stimulus->given_ns ? 0 : sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
							 stimulus->due_ns + response->apart_ns);

	if (!err && !stimulus->given_ns)
		err = give_edge(response);
	if (!err)
		err = await_answer(worker, &edge);
	if (err)
		return err > 0 ? give_up(worker, activation) : err;
	if (edge.edge_ns)
		*value++ = edge.edge_ns - stimulus->given_ns;
	if (!edge.edge_ns || response->role->own_wire)
		*value++ = edge.woken_ns - stimulus->given_ns;
	end_edge(response, value[-1], true, activation);
	tell_latmon(response, activation, true);
	return response->both ? 0 : gpio_drive(&response->gpio, !stimulus->level);
}

/* The run ends with the other side, and also if none comes before its end. */
static bool has_no_partner(struct worker *worker)
{
	struct latmon *latmon = ((struct response *)worker->state)->latmon;
	int64_t passed_ns = clock_now_ns() - ((struct response *)worker->state)->from_ns;
	char why[LATMON_WHY];

	if (latmon_runs(latmon))
		return false;
	worker->ended = latmon_over(latmon, why, sizeof(why));
	if (worker->ended) {
		snprintf(worker->why, sizeof(worker->why), "it ends with the other side: %s", why);
	} else if (passed_ns >= worker->duration_ns) {
		worker->ended = true;
		snprintf(worker->why, sizeof(worker->why), "no client asked for edges");
	} else {
		sys_sleep(CLOCK_MONOTONIC, 0, PAUSE_NS);
	}
	return true;
}

/* 0 if there is something to measure, else -EINTR: nobody has asked for edges yet, or the other side has ended. */
static int await_partner(struct worker *worker)
{
	struct response *response = worker->state;
	struct stimulus *stimulus = &response->stimulus;

	if (stimulus->given_ns)
		return 0;
	if (has_no_partner(worker))
		return -EINTR;
	if (!stimulus->given && stimulus->due_ns < clock_now_ns())
		stimulus->due_ns = clock_now_ns() + stimulus->period_ns;
	return 0;
}

static int gpio_take(struct worker *worker, struct activation *activation)
{
	struct response *response = worker->state;
	int err = response->latmon ? await_partner(worker) : 0;

	if (err)
		return err;
	if (response->role->watches)
		return take_pulse(response, activation);
	return response->role->gives_edges ? take_answer(worker, activation) : take_edge(response, activation);
}

/* An edge that waits for its answer when the run ends is worth the time that it has waited. */
static bool gpio_pending(struct worker *worker)
{
	const struct response *response = worker->state;

	return response && response->stimulus.given_ns;
}

static void leave_account(struct worker *worker)
{
	const struct response *response = worker->state;
	const struct stimulus *stimulus = &response->stimulus;
	const struct gpio *gpio = &response->gpio;
	struct probe_file *file = &worker->files[worker->n_files];

	file->content = malloc(ACCOUNT_MOST);
	if (!file->content)
		return;
	snprintf(file->path, sizeof(file->path), "gpio/thread%d", worker->number);
	file->length = (size_t)snprintf(file->content, ACCOUNT_MOST,
		"interface %s\nchip %s\nlabel %s\nin %u\nout %u\nedges %llu\nlost %llu\ngiven %llu\nanswered %llu\n"
		"unanswered %llu\ncut_off %d\nstrays %llu\nseed %llu\npulses %llu\nmissing %llu\n",
		gpio_interface_name(gpio->interface), gpio->chip.name, gpio->chip.label, gpio->order.in, gpio->order.out,
		(unsigned long long)response->edges, (unsigned long long)response->lost, (unsigned long long)stimulus->given,
		(unsigned long long)stimulus->answered, (unsigned long long)stimulus->unanswered, response->cut_off,
		(unsigned long long)stimulus->strays, (unsigned long long)response->seed, (unsigned long long)response->pulses.seen,
		(unsigned long long)response->pulses.missing);
	worker->n_files++;
}

/* Edges come until latmon has heard that it shall stop. */
static void answer_the_last(struct response *response)
{
	struct gpio_edge edge;

	latmon_leave(response->latmon);
	while (latmon_runs(response->latmon)) {
		if (gpio_wait(&response->gpio, CALL_MS, &edge))
			continue;
		response->edges++;
		gpio_drive(&response->gpio, false);
		gpio_drive(&response->gpio, true);
	}
}

static void leave_latmon(struct worker *worker, struct latmon *latmon)
{
	struct probe_file *file = &worker->files[worker->n_files];

	latmon_end(latmon);
	snprintf(file->path, sizeof(file->path), "latmon/thread%d", worker->number);
	file->content = latmon_account(latmon, &file->length);
	worker->n_files += file->content != NULL;
	latmon_free(latmon);
}

static void gpio_probe_close(struct worker *worker)
{
	struct response *response = worker->state;

	if (!response)
		return;
	if (response->latmon && !response->role->gives_edges)
		answer_the_last(response);
	if (!*worker->why || worker->ended)
		leave_account(worker);
	if (response->latmon)
		leave_latmon(worker, response->latmon);
	if (response->gpio.back)
		gpio_close(&response->gpio);
	free(response);
	worker->state = NULL;
}

const struct probe probe_gpio = {
	.name = "gpio",
	.help = "from an edge on a GPIO line to a task's answer on another line",
	.field = "response",
	.unit = "ns",
	.methods = methods,
	.options = options,
	.check = gpio_check,
	.adapt = gpio_adapt,
	.open = gpio_probe_open,
	.take = gpio_take,
	.pending = gpio_pending,
	.close = gpio_probe_close,
};
