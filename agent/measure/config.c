/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "measure/config.h"

#include "system/text.h"

#include <stdio.h>
#include <string.h>

enum { PRIORITY_DEFAULT = 80 };

static int check_method(const struct config *config, char *why, size_t room)
{
	const struct method *method = config->method;

	if (method->single && config->threads > 1)
		return text_refuse(why, room, -EINVAL, "method %s can serve one thread only; say --threads 1", method->name);
	if (method->no_deadline && config->policy == POLICY_DEADLINE)
		return text_refuse(why, room, -EINVAL, "method %s can't have policy deadline; take fifo, rr or other", method->name);
	if (config->period_step_ns && (method->external || method->loop))
		return text_refuse(why, room, -EINVAL, "method %s has one period for all threads; leave --period-step out", method->name);
	if (method->in_us && (config->period_ns % 1000 || config->period_step_ns % 1000))
		return text_refuse(why, room, -EINVAL, "method %s counts in microseconds; give such a period", method->name);
	return 0;
}

static int choose_method(struct config *config, char *why, size_t room)
{
	const struct probe *probe = config->probe;
	const char *name = config->method_asked, *reason;

	config->method = name ? probe_method(probe, name) : probe->methods[0];
	if (!config->method)
		return text_refuse(why, room, -EINVAL, "probe '%s' has no method '%s'; see rtproof-agent list", probe->name, name);
	reason = method_unsupported(config->method);
	if (reason)
		return text_refuse(why, room, -EINVAL, "the method can't run here: %s", reason);
	if (config->method->choose)
		config->method = config->method->choose();
	if (probe->check && probe->check(config->method, config->probe_values, config->period_ns, why, room))
		return -EINVAL;
	if (probe->adapt)
		config->method = probe->adapt(config->method, config->probe_values);
	config->fields = method_fields(config->method);
	if (config->method->single && config->threads == 0)
		config->threads = 1;
	return check_method(config, why, room);
}

/* libc may count only the CPUs that this process may use, and /sys may not be there. */
static bool cpu_exists(int cpu)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
	return cpu < sysconf(_SC_NPROCESSORS_CONF) || access(path, F_OK) == 0;
}

/* Why a thread of this process can't be bound to this CPU. trial: what the kernel said to that. */
static int refuse_cpu(const char *who, int cpu, int trial, char *why, size_t room)
{
	int on_line = cpus_on_line(cpu);

	if (!cpu_exists(cpu))
		return text_refuse(why, room, -EINVAL, "%sthere is no CPU %d on this machine", who, cpu);
	if (on_line == 0)
		return text_refuse(why, room, -EINVAL, "%sCPU %d is off line", who, cpu);
	if (trial && trial != -EINVAL) /* -EINVAL: none of the CPUs is allowed */
		return text_refuse(why, room, -EINVAL, "%sthe kernel does not let this process use CPU %d: %s", who, cpu, strerror(-trial));
	return text_refuse(why, room, -EINVAL, "%s%sthe control group (cpuset) of this process does not allow CPU %d", who,
			   on_line < 0 ? "the CPU is off line, or " : "", cpu);
}

/* who: begins the sentence, unless it is empty. */
static int check_cpus(const char *who, const struct cpus *asked, const struct cpus *reached, int trial, char *why, size_t room)
{
	for (int cpu = 0; cpu < CPUS_MOST; cpu++)
		if (cpus_has(asked, cpu) && !cpus_has(reached, cpu))
			return refuse_cpu(who, cpu, trial, why, room);
	return 0;
}

/* Those to measure, and those that loads are bound to. None need be in the affinity of this process, `own`. */
static int check_all_cpus(const struct config *config, const struct cpus *own, char *why, size_t room)
{
	struct cpus asked = config->cpus, reached;
	char who[LOAD_LABEL + 16];

	for (int i = 0; i < config->n_loads; i++)
		cpus_add_all(&asked, &config->loads[i].cpus);
	int trial = cpus_reach(own, &asked, &reached), err = check_cpus("", &config->cpus, &reached, trial, why, room);

	for (int i = 0; i < config->n_loads && !err; i++) {
		snprintf(who, sizeof(who), "load %s: ", config->loads[i].name);
		err = check_cpus(who, &config->loads[i].cpus, &reached, trial, why, room);
	}
	return err;
}

/* Some threads of a measurement have one priority less than it. */
static void tell_loads(struct config *config, const struct cpus *own)
{
	for (int i = 0; i < config->n_loads; i++) {
		struct running_load *load = &config->loads[i];

		load->order.cpus = cpus_count(load->bound ? &load->cpus : own);
		load->order.last = config->priority && config->priority <= 2;
	}
}

static int check_probe(const struct config *config, const struct cpus *own, char *why, size_t room)
{
	struct cpus usable = *own;

	if (!config->probe->check_cpus)
		return 0;
	cpus_add_all(&usable, &config->cpus);
	return config->probe->check_cpus(config->probe_values, &usable, why, room);
}

int config_choose_cpus(struct config *config, char *why, size_t room)
{
	struct cpus own;
	int err = cpus_get_affinity(0, &own);

	if (err)
		return text_refuse(why, room, -EINVAL, "the kernel does not tell which CPUs may be used: %s", strerror(-err));
	if (!config->cpus_given)
		config->cpus = own;
	err = check_all_cpus(config, &own, why, room);
	if (!err)
		err = check_probe(config, &own, why, room);
	if (err)
		return err;
	if (!config->threads)
		config->threads = cpus_count(&config->cpus);
	double longest_ns = (double)config->period_step_ns * (config->threads - 1) + (double)config->period_ns;

	if (config->period_step_ns && (longest_ns > config_length_ns(config) || longest_ns > 9e18))
		return text_refuse(why, room, -EINVAL, "the last thread's period is longer than the measurement");
	if (config->policy == POLICY_DEADLINE && config->cpus_given)
		return text_refuse(why, room, -EINVAL, "policy deadline can't be bound to CPUs; leave --cpus out");
	tell_loads(config, &own);
	return 0;
}

static int check_together(struct config *config, char *why, size_t room)
{
	if (!config->output)
		return text_refuse(why, room, -EINVAL, "no place for the record: say -o FILE, or -o - for standard output");
	if (!config->duration_ns == !config->samples)
		return text_refuse(why, room, -EINVAL, "say how long to measure, with one of --duration and --samples");
	if (config->duration_ns && config->duration_ns < config->period_ns)
		return text_refuse(why, room, -EINVAL, "the duration is shorter than a period");
	if (config->policy == POLICY_DEADLINE && config->period_ns < 100000)
		return text_refuse(why, room, -EINVAL, "policy deadline needs a period of at least 100 us");
	if (config->priority && config->policy != POLICY_FIFO && config->policy != POLICY_RR)
		return text_refuse(why, room, -EINVAL, "policy %s has no priority; leave --priority out", policy_name((int)config->policy));
	if (config->timer_slack_ns && config->policy != POLICY_OTHER)
		return text_refuse(why, room, -EINVAL, "policy %s has no timer slack; leave --timer-slack out", policy_name((int)config->policy));
	if (!config->priority && (config->policy == POLICY_FIFO || config->policy == POLICY_RR))
		config->priority = PRIORITY_DEFAULT;
	config->asked_policy = config->policy;
	config->asked_priority = config->priority;
	return 0;
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

void config_set_presets(struct config *config)
{
	memset(config, 0, sizeof(*config));
	config->probe = probe_find("timer");
	config->period_ns = NS_PER_SECOND / 1000;
	config->warmup_ns = NS_PER_SECOND;
	config->policy = POLICY_FIFO;
	config->phase_ns = config->align_ns = -1;
	config->lock_memory = config->keep_samples = true;
	config->checkpoint_ns = 10 * NS_PER_SECOND;
}

int config_complete(struct config *config, char *why, size_t room)
{
	int err = check_together(config, why, room);

	if (!err)
		err = choose_method(config, why, room);
	return err ? err : config_choose_cpus(config, why, room);
}
