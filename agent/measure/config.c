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

static int check_allowed(const struct cpus *asked, const struct cpus *allowed, char *why, size_t room)
{
	for (int cpu = 0; cpu < CPUS_MOST; cpu++) {
		if (!cpus_has(asked, cpu) || cpus_has(allowed, cpu))
			continue;
		if (cpu_exists(cpu))
			return text_refuse(why, room, -EINVAL, "CPU %d is off line, or this process may not use it", cpu);
		return text_refuse(why, room, -EINVAL, "there is no CPU %d on this machine", cpu);
	}
	return 0;
}

/* Some threads of a measurement have one priority less than it. */
static void tell_loads(struct config *config, int cpus)
{
	for (int i = 0; i < config->n_loads; i++) {
		config->loads[i].order.cpus = cpus;
		config->loads[i].order.last = config->priority && config->priority <= 2;
	}
}

int config_choose_cpus(struct config *config, char *why, size_t room)
{
	struct cpus allowed;
	int err = cpus_get_affinity(0, &allowed);

	if (err)
		return text_refuse(why, room, -EINVAL, "the kernel does not tell which CPUs may be used: %s", strerror(-err));
	if (!config->cpus_given)
		config->cpus = allowed;
	err = check_allowed(&config->cpus, &allowed, why, room);
	if (err)
		return err;
	if (!config->threads)
		config->threads = cpus_count(&config->cpus);
	double longest_ns = (double)config->period_step_ns * (config->threads - 1) + (double)config->period_ns;

	if (config->period_step_ns && (longest_ns > config_length_ns(config) || longest_ns > 9e18))
		return text_refuse(why, room, -EINVAL, "the last thread's period is longer than the measurement");
	if (config->policy == POLICY_DEADLINE && config->cpus_given)
		return text_refuse(why, room, -EINVAL, "policy deadline can't be bound to CPUs; leave --cpus out");
	tell_loads(config, cpus_count(&allowed));
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
	config->phase_ns = -1;
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
