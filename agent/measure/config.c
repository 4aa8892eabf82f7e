/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "measure/config.h"

#include "loads/common/program.h"
#include "system/text.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SECOND NS_PER_SECOND

enum { PERIOD_LEAST_NS = 10000, PRIORITY_DEFAULT = 80 };

static const struct option long_options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "probe", required_argument, NULL, 'P' },
	{ "method", required_argument, NULL, 'M' },
	{ "period", required_argument, NULL, 'i' },
	{ "period-step", required_argument, NULL, 'I' },
	{ "duration", required_argument, NULL, 'D' },
	{ "samples", required_argument, NULL, 'n' },
	{ "warmup", required_argument, NULL, 'w' },
	{ "cpus", required_argument, NULL, 'c' },
	{ "threads", required_argument, NULL, 't' },
	{ "policy", required_argument, NULL, 's' },
	{ "priority", required_argument, NULL, 'p' },
	{ "phase", required_argument, NULL, 'f' },
	{ "dma-latency", required_argument, NULL, 'd' },
	{ "no-lock-memory", no_argument, NULL, 'm' },
	{ "record", required_argument, NULL, 'r' },
	{ "checkpoint", required_argument, NULL, 'k' },
	{ "load", required_argument, NULL, 'l' },
	{ "trace", required_argument, NULL, 'T' },
	{ "trace-blocks", required_argument, NULL, 'B' },
	{ "program", required_argument, NULL, 'x' },
	{ "allow-unprivileged", no_argument, NULL, 'u' },
	{ "limit", required_argument, NULL, 'L' },
	{ "progress", required_argument, NULL, 'g' },
	{ "stop-on-eof", no_argument, NULL, 'e' },
	{ "until-decided", no_argument, NULL, 'U' },
	{ NULL, 0, NULL, 0 },
};

struct parser {
	struct config *config;
	const char *method;
	char *why;
	size_t room;
};

static int refuse(struct parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(struct parser *parser, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(parser->why, parser->room, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int duration(struct parser *parser, const char *name, const char *text, int64_t least_ns, int64_t *ns)
{
	if (!text_duration_ns(text, ns) && *ns >= least_ns)
		return 0;
	return refuse(parser,
		      "--%s takes a number with a unit (ns, us, ms, s, min, h, d) of at least %lld us, such as 1ms; not '%s'",
		      name, (long long)(least_ns / 1000), text);
}

static int number(struct parser *parser, const char *name, const char *text, int64_t least, int64_t most, int64_t *value)
{
	if (!text_number(text, least, most, value))
		return 0;
	return refuse(parser, "--%s takes a whole number from %lld to %lld, not '%s'", name, (long long)least,
		      (long long)most, text);
}

static int parse_policy(struct parser *parser, const char *text)
{
	static const enum policy policies[] = { POLICY_FIFO, POLICY_RR, POLICY_OTHER, POLICY_DEADLINE };

	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
		if (strcmp(policy_name((int)policies[i]), text))
			continue;
		parser->config->policy = policies[i];
		return 0;
	}
	return refuse(parser, "--policy takes fifo, rr, other or deadline, not '%s'", text);
}

static int parse_probe(struct parser *parser, const char *text)
{
	struct config *config = parser->config;

	if (strlen(text) >= sizeof(config->probe_text))
		return refuse(parser, "--probe takes fewer than %d characters", (int)sizeof(config->probe_text));
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
	return refuse(parser, "--record takes samples or summary, not '%s'", text);
}

static int parse_load(struct parser *parser, const char *text, bool program)
{
	struct config *config = parser->config;
	struct running_load *load = &config->loads[config->n_loads];

	if (config->n_loads == CONFIG_LOADS)
		return refuse(parser, "there are too many loads at '%s'; %d is the most", text, CONFIG_LOADS);
	config->n_loads++;
	return (program ? program_parse : load_parse)(text, load, parser->why, parser->room);
}

/* Given twice it is one: a user may ask two things of the same limit. */
static int parse_limit(struct parser *parser, const char *text)
{
	struct config *config = parser->config;
	int64_t limit_ns = 0;

	if (text_duration_ns(text, &limit_ns) || !limit_ns)
		return refuse(parser, "--limit takes a latency above 0 with a unit (ns, us, ms, s, min, h, d), such as 500us; not '%s'",
			      text);
	for (int i = 0; i < config->n_limits; i++)
		if (config->limits_ns[i] == limit_ns)
			return 0;
	if (config->n_limits == ABOVE_LIMITS)
		return refuse(parser, "there are too many limits at '%s'; %d is the most", text, ABOVE_LIMITS);
	config->limits_ns[config->n_limits++] = limit_ns;
	return 0;
}

static int parse_cpus(struct parser *parser, const char *text)
{
	parser->config->cpus_given = true;
	return cpus_parse(text, &parser->config->cpus) ? refuse(parser, "--cpus takes a list such as 0-3,5; not '%s'", text) :
							 0;
}

static int parse_option(struct parser *parser, int option, const char *text)
{
	struct config *config = parser->config;
	int64_t value = 0;
	int err = 0;

	switch (option) {
	case 'o':
		config->output = text;
		return 0;
	case 'P':
		return parse_probe(parser, text);
	case 'M':
		parser->method = text;
		return 0;
	case 'i':
		return duration(parser, "period", text, PERIOD_LEAST_NS, &config->period_ns);
	case 'I':
		return duration(parser, "period-step", text, 0, &config->period_step_ns);
	case 'D':
		return duration(parser, "duration", text, 1000, &config->duration_ns);
	case 'n':
		return number(parser, "samples", text, 1, INT64_MAX / 2, &config->samples);
	case 'w':
		return duration(parser, "warmup", text, 0, &config->warmup_ns);
	case 'c':
		return parse_cpus(parser, text);
	case 't':
		err = number(parser, "threads", text, 1, CONFIG_THREADS_MOST, &value);
		config->threads = (int)value;
		return err;
	case 's':
		return parse_policy(parser, text);
	case 'p':
		err = number(parser, "priority", text, 1, 99, &value);
		config->priority = (int)value;
		return err;
	case 'f':
		config->phase_ns = -1;
		return strcmp(text, "even") ? duration(parser, "phase", text, 0, &config->phase_ns) : 0;
	case 'd':
		config->dma_latency_us = -1;
		return strcmp(text, "off") ? number(parser, "dma-latency", text, 0, 1000000, &config->dma_latency_us) : 0;
	case 'm':
		config->lock_memory = false;
		return 0;
	case 'r':
		return parse_record(parser, text);
	case 'k':
		return duration(parser, "checkpoint", text, SECOND / 10, &config->checkpoint_ns);
	case 'l':
	case 'x':
		return parse_load(parser, text, option == 'x');
	case 'T':
		config->trace = text;
		return 0;
	case 'B':
		config->trace = config->trace ? config->trace : "on";
		return duration(parser, "trace-blocks", text, SECOND / 10, &config->trace_blocks_ns);
	case 'u':
		config->allow_unprivileged = true;
		return 0;
	case 'L':
		return parse_limit(parser, text);
	case 'g':
		return duration(parser, "progress", text, SECOND / 10, &config->progress_ns);
	case 'e':
		config->stop_on_eof = true;
		return 0;
	case 'U':
		config->until_decided = true;
		return 0;
	default:
		return -EINVAL;
	}
}

static int choose_method(struct parser *parser)
{
	struct config *config = parser->config;
	const char *reason;

	config->method = parser->method ? probe_method(config->probe, parser->method) : config->probe->methods[0];
	if (!config->method)
		return refuse(parser, "probe '%s' has no method '%s'; see rtproof-agent list", config->probe->name, parser->method);
	reason = method_unsupported(config->method);
	if (reason)
		return refuse(parser, "the method can't run here: %s", reason);
	if (config->method->choose)
		config->method = config->method->choose();
	if (config->probe->check && config->probe->check(config->method, config->probe_values, config->period_ns, parser->why,
							  parser->room))
		return -EINVAL;
	if (config->probe->adapt)
		config->method = config->probe->adapt(config->method, config->probe_values);
	config->fields = method_fields(config->method);
	if (config->method->single && config->threads == 0)
		config->threads = 1;
	if (config->method->single && config->threads > 1)
		return refuse(parser, "method %s can serve one thread only; say --threads 1", config->method->name);
	if (config->method->no_deadline && config->policy == POLICY_DEADLINE)
		return refuse(parser, "method %s can't have policy deadline; take fifo, rr or other", config->method->name);
	if (config->period_step_ns && (config->method->external || config->method->loop))
		return refuse(parser, "method %s has one period for all threads; leave --period-step out", config->method->name);
	if (config->method->in_us && (config->period_ns % 1000 || config->period_step_ns % 1000))
		return refuse(parser, "method %s counts in microseconds; give such a period", config->method->name);
	return 0;
}

/* libc may count only the CPUs that this process may use, and /sys may not be there. */
static bool cpu_exists(int cpu)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
	return cpu < sysconf(_SC_NPROCESSORS_CONF) || access(path, F_OK) == 0;
}

/* Some threads of a measurement have one priority less than it. */
static void tell_loads(struct config *config, int cpus)
{
	for (int i = 0; i < config->n_loads; i++) {
		config->loads[i].order.cpus = cpus;
		config->loads[i].order.last = config->priority && config->priority <= 2;
	}
}

static int choose_cpus(struct parser *parser)
{
	struct config *config = parser->config;
	struct cpus allowed;
	int err = cpus_get_affinity(0, &allowed);

	if (err)
		return refuse(parser, "the kernel does not tell which CPUs may be used: %s", strerror(-err));
	if (!config->cpus_given)
		config->cpus = allowed;
	for (int cpu = 0; cpu < CPUS_MOST; cpu++) {
		if (!cpus_has(&config->cpus, cpu) || cpus_has(&allowed, cpu))
			continue;
		if (cpu_exists(cpu))
			return refuse(parser, "CPU %d is off line, or this process may not use it", cpu);
		return refuse(parser, "there is no CPU %d on this machine", cpu);
	}
	if (!config->threads)
		config->threads = cpus_count(&config->cpus);
	double longest_ns = (double)config->period_step_ns * (config->threads - 1) + (double)config->period_ns;

	if (config->period_step_ns && (longest_ns > config_length_ns(config) || longest_ns > 9e18))
		return refuse(parser, "the last thread's period is longer than the measurement");
	if (config->policy == POLICY_DEADLINE && config->cpus_given)
		return refuse(parser, "policy deadline can't be bound to CPUs; leave --cpus out");
	tell_loads(config, cpus_count(&allowed));
	return 0;
}

static int check_together(struct parser *parser)
{
	struct config *config = parser->config;

	if (!config->output)
		return refuse(parser, "where shall the record go? say -o FILE, or -o - for standard output");
	if (!config->duration_ns == !config->samples)
		return refuse(parser, "say how long to measure, with one of --duration and --samples");
	if (config->duration_ns && config->duration_ns < config->period_ns)
		return refuse(parser, "the duration is shorter than a period");
	if (config->policy == POLICY_DEADLINE && config->period_ns < 100000)
		return refuse(parser, "policy deadline needs a period of at least 100 us");
	if (config->priority && config->policy != POLICY_FIFO && config->policy != POLICY_RR)
		return refuse(parser, "policy %s has no priority; leave --priority out", policy_name((int)config->policy));
	if (!config->priority && (config->policy == POLICY_FIFO || config->policy == POLICY_RR))
		config->priority = PRIORITY_DEFAULT;
	config->asked_policy = config->policy;
	config->asked_priority = config->priority;
	return 0;
}

static void keep_arguments(struct config *config, int argc, char **argv)
{
	size_t used = 0;

	for (int i = 0; i < argc && used < sizeof(config->arguments); i++)
		used += (size_t)snprintf(config->arguments + used, sizeof(config->arguments) - used, "%s%s", i ? " " : "",
					 argv[i]);
}

int64_t config_period_ns(const struct config *config, int thread)
{
	return config->period_ns + config->period_step_ns * thread;
}

uint64_t config_count(const struct config *config, int thread)
{
	int64_t period_ns = config_period_ns(config, thread);

	if (config->samples && config->period_step_ns)
		return (uint64_t)(config_length_ns(config) / (double)period_ns);
	if (config->samples)
		return (uint64_t)config->samples;
	/* Off the grid the number is not known before; the time ends it. */
	return config->method->on_grid ? (uint64_t)(config->duration_ns / period_ns) : UINT64_MAX;
}

double config_length_ns(const struct config *config)
{
	return config->samples ? (double)config->samples * (double)config->period_ns : (double)config->duration_ns;
}

static void set_presets(struct config *config)
{
	memset(config, 0, sizeof(*config));
	config->probe = probe_find("timer");
	config->period_ns = SECOND / 1000;
	config->warmup_ns = SECOND;
	config->policy = POLICY_FIFO;
	config->phase_ns = -1;
	config->lock_memory = config->keep_samples = true;
	config->checkpoint_ns = 10 * SECOND;
	opterr = optind = 0; /* 0: begin anew, in glibc and in musl */
}

/* Up to the end, or the first argument that is no option. few: which there may be, or NULL. */
static int parse_options(struct parser *parser, int argc, char **argv, const char *few)
{
	int option, at = optind ? optind : 1, err = 0;

	while (!err && (option = getopt_long(argc, argv, "+:o:", long_options, NULL)) != -1) {
		if (option == ':')
			err = refuse(parser, "option '%s' needs a value", argv[at]);
		else if (option == '?' || (few && !strchr(few, option)))
			err = refuse(parser, "unknown option '%s'; see rtproof-agent help", argv[at]);
		else
			err = parse_option(parser, option, optarg);
		at = optind;
	}
	return err;
}

int parse_loads(int argc, char **argv, struct config *config, char *why, size_t room)
{
	struct parser parser = { config, NULL, why, room };
	int err;

	set_presets(config);
	do
		err = parse_options(&parser, argc, argv, "lxDe");
	while (!err && optind < argc && !(err = parse_load(&parser, argv[optind++], false)));
	if (!err && !config->n_loads)
		err = refuse(&parser, "which load? see rtproof-agent list");
	return err ? err : choose_cpus(&parser);
}

int parse_config(int argc, char **argv, struct config *config, char *why, size_t room)
{
	struct parser parser = { config, NULL, why, room };

	set_presets(config);
	keep_arguments(config, argc, argv);
	int err = parse_options(&parser, argc, argv, NULL);

	if (!err && optind < argc)
		err = refuse(&parser, "what is '%s'? Every argument of run is an option", argv[optind]);
	if (!err)
		err = check_together(&parser);
	if (!err)
		err = choose_method(&parser);
	return err ? err : choose_cpus(&parser);
}
