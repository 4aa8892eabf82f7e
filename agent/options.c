/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "options.h"

#include "loads/common/program.h"
#include "run/settings.h"
#include "system/text.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { PERIOD_LEAST_NS = 10000, DMA_LATENCY_MOST_US = 1000000, TENTH_NS = 100000000, STREAM_LEAST = 1 << 20 };

struct parser {
	struct config *config;
	char *why;
	size_t room;
};

typedef int parse_value(struct parser *parser, const char *text);
typedef int parse_load(const char *text, struct running_load *load, char *why, size_t room);

/* What the value of an option is, and so where it goes: the type of the member of struct config that `place` says. */
enum kind {
	TEXT,     /* const char * */
	DURATION, /* int64_t, in ns; not below `least` */
	NUMBER,   /* int64_t from `least` to `most` */
	COUNT,    /* int from `least` to `most` */
	YES,      /* no value: bool becomes true */
	NO,       /* no value: bool becomes false */
	OWN,      /* a function of its own reads it */
};

/* One option: parsing and `help` both follow this. `word`: may stand for the value -1. */
struct row {
	const char *name, *value, *help;
	enum kind kind;
	bool of_load; /* the command "load" has it as well */
	char letter;
	size_t place;
	int64_t least, most;
	const char *word;
	parse_value *parse;
};

static int parse_policy(struct parser *parser, const char *text)
{
	static const enum policy policies[] = { POLICY_FIFO, POLICY_RR, POLICY_OTHER, POLICY_DEADLINE };

	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
		if (strcmp(policy_name((int)policies[i]), text))
			continue;
		parser->config->policy = policies[i];
		return 0;
	}
	return text_refuse(parser->why, parser->room, -EINVAL, "--policy takes fifo, rr, other or deadline, not '%s'", text);
}

static int parse_probe(struct parser *parser, const char *text)
{
	struct config *config = parser->config;

	if (strlen(text) >= sizeof(config->probe_text))
		return text_refuse(parser->why, parser->room, -EINVAL, "--probe takes fewer than %d characters", (int)sizeof(config->probe_text));
	snprintf(config->probe_text, sizeof(config->probe_text), "%s", text);
	snprintf(config->probe_given, sizeof(config->probe_given), "%s", strchr(text, ':') ? strchr(text, ':') + 1 : "");
	memset(config->probe_values, 0, sizeof(config->probe_values));
	return probe_parse(config->probe_text, &config->probe, config->probe_values, parser->why, parser->room);
}

static int parse_record(struct parser *parser, const char *text)
{
	parser->config->keep_samples = !strcmp(text, "samples");
	if (parser->config->keep_samples || !strcmp(text, "summary"))
		return 0;
	return text_refuse(parser->why, parser->room, -EINVAL, "--record takes samples or summary, not '%s'", text);
}

static int add_load(struct parser *parser, const char *text, parse_load *parse)
{
	struct config *config = parser->config;
	struct running_load *load = &config->loads[config->n_loads];

	if (config->n_loads == CONFIG_LOADS)
		return text_refuse(parser->why, parser->room, -EINVAL, "there are too many loads at '%s'; %d is the most", text, CONFIG_LOADS);
	config->n_loads++;
	return parse(text, load, parser->why, parser->room);
}

static int parse_load_option(struct parser *parser, const char *text)
{
	return add_load(parser, text, load_parse);
}

static int parse_program(struct parser *parser, const char *text)
{
	return add_load(parser, text, program_parse);
}

/* Given twice it is one: a user may ask two things of the same limit. */
static int parse_limit(struct parser *parser, const char *text)
{
	struct config *config = parser->config;
	int64_t limit_ns = 0;

	if (text_duration_ns(text, &limit_ns) || !limit_ns)
		return text_refuse(parser->why, parser->room, -EINVAL, "--limit takes a latency above 0 with a unit (ns, us, ms, s, min, h, d), such as 500us; not '%s'",
			      text);
	for (int i = 0; i < config->n_limits; i++)
		if (config->limits_ns[i] == limit_ns)
			return 0;
	if (config->n_limits == ABOVE_LIMITS)
		return text_refuse(parser->why, parser->room, -EINVAL, "there are too many limits at '%s'; %d is the most", text, ABOVE_LIMITS);
	config->limits_ns[config->n_limits++] = limit_ns;
	return 0;
}

static int parse_setting(struct parser *parser, const char *text)
{
	struct config *config = parser->config;

	if (config->n_settings == CONFIG_SETTINGS)
		return text_refuse(parser->why, parser->room, -EINVAL, "there are too many settings at '%s'; %d is the most", text, CONFIG_SETTINGS);
	config->settings[config->n_settings++] = text;
	return settings_check(text, parser->why, parser->room);
}

static int parse_cpus(struct parser *parser, const char *text)
{
	parser->config->cpus_given = true;
	if (!cpus_parse(text, &parser->config->cpus))
		return 0;
	return text_refuse(parser->why, parser->room, -EINVAL, "--cpus takes a list such as 0-3,5; not '%s'", text);
}

static int parse_duration(struct parser *parser, const char *name, const char *text, int64_t least_ns, int64_t *ns);

static int parse_trace_blocks(struct parser *parser, const char *text)
{
	struct config *config = parser->config;

	config->trace = config->trace ? config->trace : "on";
	return parse_duration(parser, "trace-blocks", text, TENTH_NS, &config->trace_blocks_ns);
}

#define PLACE(member) .place = offsetof(struct config, member)

static const struct row rows[] = {
	{ "output", "FILE", "the record; must not exist; - for standard output", TEXT, PLACE(output), .letter = 'o' },
	{ "duration", "TIME", "how long to measure: 20s, 5min, 12h, 2d", DURATION, PLACE(duration_ns), .least = 1000, .of_load = true },
	{ "samples", "N", "or: how many due times for the first thread", NUMBER, PLACE(samples), .least = 1, .most = INT64_MAX / 2 },
	{ "period", "TIME", "between due times (1ms)", DURATION, PLACE(period_ns), .least = PERIOD_LEAST_NS },
	{ "period-step", "TIME", "added to the period of each further thread (0s)", DURATION, PLACE(period_step_ns) },
	{ "warmup", "TIME", "run this long first and throw it away (1s)", DURATION, PLACE(warmup_ns) },
	{ "align", "TIME", "first due time: this long behind a full second of CLOCK_MONOTONIC", DURATION, PLACE(align_ns) },
	{ "break", "TIME", "end with the first latency above this", DURATION, PLACE(break_ns) },
	{ "probe", "NAME[:K=V,..]", "what to measure (timer)", OWN, .parse = parse_probe },
	{ "method", "NAME", "how; see list", TEXT, PLACE(method_asked) },
	{ "cpus", "LIST", "which CPUs, such as 0-3,5 (all that are allowed)", OWN, .parse = parse_cpus },
	{ "threads", "N", "measuring threads (one for each CPU)", COUNT, PLACE(threads), .least = 1, .most = CONFIG_THREADS_MOST },
	{ "policy", "NAME", "fifo, rr, other or deadline (fifo)", OWN, .parse = parse_policy },
	{ "priority", "N", "1 to 99 (80)", COUNT, PLACE(priority), .least = 1, .most = 99 },
	{ "phase", "TIME", "between the due times of neighbours (even: spread over a period)", DURATION, PLACE(phase_ns), .word = "even" },
	{ "dma-latency", "US", "hold /dev/cpu_dma_latency at this (0); off: leave it alone", NUMBER, PLACE(dma_latency_us),
	  .most = DMA_LATENCY_MOST_US, .word = "off" },
	{ "timer-slack", "TIME", "of the measuring threads, with --policy other (as inherited)", DURATION, PLACE(timer_slack_ns), .least = 1 },
	{ "no-lock-memory", NULL, "do without mlockall()", NO, PLACE(lock_memory) },
	{ "record", "WHAT", "samples or summary (samples)", OWN, .parse = parse_record },
	{ "checkpoint", "TIME", "flush to the medium this often (10s)", DURATION, PLACE(checkpoint_ns), .least = TENTH_NS },
	{ "load", "NAME[:K=V,..][@CPUS]", "a load to run meanwhile, bound to CPUS if they are given; may be given again; see list", OWN, .parse = parse_load_option, .of_load = true },
	{ "trace", "WHAT", "keep the kernel's events: on, or events=NAME+..,buffer_kib=N", TEXT, PLACE(trace) },
	{ "trace-blocks", "TIME", "trace on and off in blocks of this length", OWN, .parse = parse_trace_blocks },
	{ "begin", "MARK", "with --trace: what begins an activation of an application, for the desk", TEXT, PLACE(marks[0]) },
	{ "end", "MARK", "what ends it: marker:TEXT, uprobe:/FILE:OFFSET, event:SYSTEM/NAME[:FILTER]", TEXT, PLACE(marks[1]) },
	{ "program", "NAME[:K=V,..][@CPUS] COMMAND", "(one argument) a program as a load; see list", OWN, .parse = parse_program, .of_load = true },
	{ "set", "NAME=VALUE", "change a setting of the machine until the run ends; may be given again", OWN, .parse = parse_setting },
	{ "allow-unprivileged", NULL, "measure without the real-time policy if it is refused", YES, PLACE(allow_unprivileged) },
	{ "limit", "TIME", "latency to stay below; larger ones are kept; may be given again", OWN, .parse = parse_limit },
	{ "claims", "TEXT", "what a host judges the run by, for the record", TEXT, PLACE(claims) },
	{ "stream", "BYTES", "the record is in RAM and fetched meanwhile: what waits may take this much", NUMBER, PLACE(stream_bytes),
	  .least = STREAM_LEAST, .most = INT64_MAX / 4 },
	{ "progress", "TIME", "a line for each thread on standard error, this often", DURATION, PLACE(progress_ns), .least = TENTH_NS },
	{ "stop-on-eof", NULL, "end when standard input ends", YES, PLACE(stop_on_eof), .of_load = true },
	{ "until-decided", NULL, "note that the host ends the run (SIGINT) when its limits are decided", YES, PLACE(until_decided) },
};

enum { ROWS = sizeof(rows) / sizeof(*rows) };

void options_print(FILE *file)
{
	char words[64];

	for (const struct row *row = rows; row < rows + ROWS; row++) {
		snprintf(words, sizeof(words), "--%s%s%s", row->name, row->value ? " " : "", row->value ? row->value : "");
		if (row->letter)
			fprintf(file, "  -%c, %-18s  %s\n", row->letter, words, row->help);
		else
			fprintf(file, "      %-18s  %s\n", words, row->help);
	}
}

static int parse_duration(struct parser *parser, const char *name, const char *text, int64_t least_ns, int64_t *ns)
{
	if (!text_duration_ns(text, ns) && *ns >= least_ns)
		return 0;
	return text_refuse(parser->why, parser->room, -EINVAL, "--%s takes a number with a unit (ns, us, ms, s, min, h, d) of at least %lld %s, such as 1ms; not '%s'",
		      name, (long long)(least_ns % 1000 ? least_ns : least_ns / 1000), least_ns % 1000 ? "ns" : "us", text);
}

static int parse_number(struct parser *parser, const char *name, const char *text, int64_t least, int64_t most, int64_t *value)
{
	if (!text_number(text, least, most, value))
		return 0;
	return text_refuse(parser->why, parser->room, -EINVAL, "--%s takes a whole number from %lld to %lld, not '%s'", name, (long long)least,
		      (long long)most, text);
}

static int parse_option(struct parser *parser, const struct row *row, const char *text)
{
	void *place = (char *)parser->config + row->place;
	int64_t value = -1;
	int err = 0;

	if (!row->word || strcmp(text, row->word))
		err = row->kind == DURATION ? parse_duration(parser, row->name, text, row->least, &value) :
		      row->kind == NUMBER || row->kind == COUNT ?
					      parse_number(parser, row->name, text, row->least, row->most, &value) :
					      0;
	if (err)
		return err;
	switch (row->kind) {
	case TEXT:
		*(const char **)place = text;
		return 0;
	case DURATION:
	case NUMBER:
		*(int64_t *)place = value;
		return 0;
	case COUNT:
		*(int *)place = (int)value;
		return 0;
	case YES:
	case NO:
		*(bool *)place = row->kind == YES;
		return 0;
	case OWN:
		break;
	}
	return row->parse(parser, text);
}

static void keep_arguments(struct config *config, int argc, char **argv)
{
	size_t used = 0;

	for (int i = 0; i < argc && used < sizeof(config->arguments); i++)
		used += (size_t)snprintf(config->arguments + used, sizeof(config->arguments) - used, "%s%s", i ? " " : "",
					 argv[i]);
}

enum { FIRST_CODE = 256 }; /* above all letters */

static const struct row *row_of(int code)
{
	for (const struct row *row = rows; row < rows + ROWS; row++)
		if (code == FIRST_CODE + (int)(row - rows) || (row->letter && code == row->letter))
			return row;
	return NULL;
}

/* Up to the end, or the first argument that is no option. */
static int parse_options(struct parser *parser, int argc, char **argv, bool of_load)
{
	struct option options[ROWS + 1] = { { NULL, 0, NULL, 0 } };
	int code, at = optind ? optind : 1, err = 0;

	for (int i = 0; i < ROWS; i++)
		options[i] = (struct option){ rows[i].name, rows[i].kind == YES || rows[i].kind == NO ? no_argument : required_argument,
					      NULL, FIRST_CODE + i };
	while (!err && (code = getopt_long(argc, argv, "+:o:", options, NULL)) != -1) {
		const struct row *row = row_of(code);

		if (code == ':')
			err = text_refuse(parser->why, parser->room, -EINVAL, "option '%s' needs a value", argv[at]);
		else if (!row || (of_load && !row->of_load))
			err = text_refuse(parser->why, parser->room, -EINVAL, "unknown option '%s'; see rtproof-agent help", argv[at]);
		else
			err = parse_option(parser, row, optarg);
		at = optind;
	}
	return err;
}

static void begin(struct config *config)
{
	config_set_presets(config);
	opterr = optind = 0; /* 0: begin anew, in glibc and in musl */
}

int parse_loads(int argc, char **argv, struct config *config, char *why, size_t room)
{
	struct parser parser = { config, why, room };
	int err;

	begin(config);
	do
		err = parse_options(&parser, argc, argv, true);
	while (!err && optind < argc && !(err = parse_load_option(&parser, argv[optind++])));
	if (!err && !config->n_loads)
		err = text_refuse(why, room, -EINVAL, "give a load; see rtproof-agent list");
	return err ? err : config_choose_cpus(config, why, room);
}

int parse_settings(int argc, char **argv, struct config *config, char *why, size_t room)
{
	struct parser parser = { config, why, room };

	begin(config);
	int err = parse_options(&parser, argc, argv, false);

	return err || config->n_settings ? err : text_refuse(why, room, -EINVAL, "give --set NAME=VALUE");
}

int parse_config(int argc, char **argv, struct config *config, char *why, size_t room)
{
	struct parser parser = { config, why, room };

	begin(config);
	keep_arguments(config, argc, argv);
	int err = parse_options(&parser, argc, argv, false);

	if (!err && optind < argc)
		err = text_refuse(why, room, -EINVAL, "run takes options only, not '%s'", argv[optind]);
	return err ? err : config_complete(config, why, room);
}
