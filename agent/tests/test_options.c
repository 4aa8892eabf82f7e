/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "options.h"

#include "check.h"

#include <string.h>

enum { WORDS = 64 };

#define ENOUGH "-o x --duration 1s "
#define LATENCY "takes a latency above 0 with a unit (ns, us, ms, s, min, h, d), such as 500us; not "
#define UNITS "takes a number with a unit (ns, us, ms, s, min, h, d) of at least "

static struct config config;
static char why[512];

/* The words of a line as arguments of "run". They stay valid until the next call. */
static int parse(const char *line)
{
	static char copy[4096];
	char run[] = "run", *words[WORDS] = { run }, *rest = NULL;
	int n = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &rest); word && n < WORDS - 1; word = strtok_r(NULL, " ", &rest))
		words[n++] = word;
	why[0] = '\0';
	return parse_config(n, words, &config, why, sizeof(why));
}

static void accept(const char *line)
{
	int err = parse(line);

	if (err)
		printf("%s: %s\n", line, why);
	CHECK(err == 0 && !why[0]);
}

static void refuse(const char *line, const char *sentence)
{
	int err = parse(line);

	if (err != -EINVAL || strcmp(why, sentence))
		printf("%s: %s\n", line, why);
	CHECK(err == -EINVAL);
	CHECK(!strcmp(why, sentence));
}

static void what_is_not_said_has_a_default(void)
{
	struct cpus allowed;

	accept(ENOUGH);
	CHECK(cpus_get_affinity(0, &allowed) == 0);
	CHECK(!strcmp(config.output, "x") && !strcmp(config.probe->name, "timer"));
	CHECK(!strcmp(config.method->name, "clock_nanosleep"));
	CHECK(config.period_ns == 1000000 && config.duration_ns == NS_PER_SECOND && config.samples == 0);
	CHECK(config.warmup_ns == NS_PER_SECOND && config.checkpoint_ns == 10 * NS_PER_SECOND && !config.progress_ns);
	CHECK(config.threads == cpus_count(&allowed) && !memcmp(&config.cpus, &allowed, sizeof(allowed)));
	CHECK(config.policy == POLICY_FIFO && config.priority == 80 && config.phase_ns == -1 && config.dma_latency_us == 0);
	CHECK(config.lock_memory && config.keep_samples && !config.allow_unprivileged && !config.stop_on_eof && !config.until_decided && !config.claims);
	CHECK(config.n_loads == 0 && config_count(&config, 0) == 1000);
	CHECK(!strcmp(config.arguments, "run -o x --duration 1s"));
}

static void what_is_said_holds(void)
{
	accept("--output - --samples 5 --period 2ms --warmup 0s --threads 3 --policy rr --priority 7 --phase 10us "
	       "--dma-latency off --no-lock-memory --record summary --checkpoint 1s --load cpu --load sched:groups=2,bytes=9 "
	       "--allow-unprivileged --progress 500ms --stop-on-eof --method timerfd");
	CHECK(!strcmp(config.output, "-") && config.samples == 5 && config_count(&config, 0) == 5);
	CHECK(config.period_ns == 2000000 && config.warmup_ns == 0 && config.threads == 3);
	CHECK(config.policy == POLICY_RR && config.priority == 7 && config.phase_ns == 10000 && config.dma_latency_us == -1);
	CHECK(!config.lock_memory && !config.keep_samples && config.allow_unprivileged && config.stop_on_eof);
	CHECK(config.checkpoint_ns == NS_PER_SECOND && config.progress_ns == NS_PER_SECOND / 2);
	CHECK(config.n_loads == 2 && !strcmp(config.loads[0].load->name, "cpu"));
	CHECK(config.loads[1].order.values[0] == 2 && config.loads[1].order.values[1] == -1);
	CHECK(config.loads[1].order.values[2] == 9);
	CHECK(!strcmp(config.method->name, "timerfd"));

	accept(ENOUGH "--policy other --phase even --method setitimer");
	CHECK(config.policy == POLICY_OTHER && config.priority == 0 && config.phase_ns == -1 && config.threads == 1);
	accept(ENOUGH "--method nanosleep");
	CHECK(config_count(&config, 0) == UINT64_MAX);
	accept(ENOUGH "--policy deadline --period 100us");
	CHECK(config.policy == POLICY_DEADLINE && config.priority == 0);
}

static void each_thread_may_have_a_period_of_its_own(void)
{
	accept(ENOUGH "--threads 4 --period-step 500us");
	CHECK(config_period_ns(&config, 0) == 1000000 && config_period_ns(&config, 3) == 2500000);
	CHECK(config_count(&config, 0) == 1000 && config_count(&config, 1) == 666 && config_count(&config, 3) == 400);
	accept("-o x --samples 60 --threads 4 --period-step 500us");
	CHECK(config_count(&config, 0) == 60 && config_count(&config, 1) == 40 && config_count(&config, 2) == 30);
	CHECK(config_count(&config, 3) == 24 && config_length_ns(&config) == 60e6);
	accept(ENOUGH "--threads 4 --period-step 333ms");
	accept("-o x --samples 4611686018427387903");
	CHECK(config_count(&config, 0) == 4611686018427387903U);
	refuse(ENOUGH "--threads 4 --period-step 334ms", "the last thread's period is longer than the measurement");
	refuse("-o x --samples 9000000000000000 --threads 4096 --period-step 9999d", "the last thread's period is longer than the measurement");
	refuse(ENOUGH "--probe cycle --period-step 1ms", "method loop has one period for all threads; leave --period-step out");
	refuse(ENOUGH "--method setitimer --period-step 1500ns", "method setitimer counts in microseconds; give such a period");
	refuse("--period-step 1", "--period-step " UNITS "0 us, such as 1ms; not '1'");
}

static void a_run_may_begin_at_a_second_and_end_with_a_latency(void)
{
	accept(ENOUGH);
	CHECK(config.align_ns == -1 && config.break_ns == 0);
	accept(ENOUGH "--align 250us --break 90us");
	CHECK(config.align_ns == 250000 && config.break_ns == 90000);
	refuse("--break 90", "--break " UNITS "0 us, such as 1ms; not '90'");
}

static void a_limit_given_twice_is_one(void)
{
	accept(ENOUGH);
	CHECK(config.n_limits == 0);
	accept(ENOUGH "--limit 1ms --limit 500us --limit 1000us");
	CHECK(config.n_limits == 2 && config.limits_ns[0] == 1000000 && config.limits_ns[1] == 500000);
	accept(ENOUGH "--limit 1us --limit 2us --limit 3us --limit 4us --limit 5us --limit 6us --limit 7us --limit 8us --limit 8us");
	CHECK(config.n_limits == ABOVE_LIMITS && config.limits_ns[7] == 8000);
}

static void options_must_be_known_and_have_their_values(void)
{
	refuse("--nope", "unknown option '--nope'; see rtproof-agent help");
	refuse("-zq", "unknown option '-zq'; see rtproof-agent help");
	refuse("-o x -z --duration 1s", "unknown option '-z'; see rtproof-agent help");
	refuse("--no-lock-memory=4", "unknown option '--no-lock-memory=4'; see rtproof-agent help");
	refuse("-o", "option '-o' needs a value");
	refuse("-o x --period", "option '--period' needs a value");
	refuse(ENOUGH "20s", "run takes options only, not '20s'");
	refuse("what --nope", "run takes options only, not 'what'");
}

static void values_must_make_sense(void)
{
	refuse("--period 0us", "--period " UNITS "10 us, such as 1ms; not '0us'");
	refuse("--period 1000", "--period " UNITS "10 us, such as 1ms; not '1000'");
	refuse("--period 9999ns", "--period " UNITS "10 us, such as 1ms; not '9999ns'");
	refuse("--duration 0s", "--duration " UNITS "1 us, such as 1ms; not '0s'");
	refuse("--warmup -1s", "--warmup " UNITS "0 us, such as 1ms; not '-1s'");
	refuse("--timer-slack 0s", "--timer-slack " UNITS "1 ns, such as 1ms; not '0s'");
	refuse("--phase sideways", "--phase " UNITS "0 us, such as 1ms; not 'sideways'");
	refuse("--checkpoint 1ms", "--checkpoint " UNITS "100000 us, such as 1ms; not '1ms'");
	refuse("--progress 1ms", "--progress " UNITS "100000 us, such as 1ms; not '1ms'");
	refuse("--samples 0", "--samples takes a whole number from 1 to 4611686018427387903, not '0'");
	refuse("--threads 4097", "--threads takes a whole number from 1 to 4096, not '4097'");
	refuse("--priority 100", "--priority takes a whole number from 1 to 99, not '100'");
	refuse("--dma-latency -1", "--dma-latency takes a whole number from 0 to 1000000, not '-1'");
	refuse("--policy batch", "--policy takes fifo, rr, other or deadline, not 'batch'");
	refuse("--record all", "--record takes samples or summary, not 'all'");
	refuse("--probe scope", "there is no probe 'scope'; see rtproof-agent list");
	refuse("--cpus 3-1", "--cpus takes a list such as 0-3,5; not '3-1'");
	refuse("--limit 0us", "--limit " LATENCY "'0us'");
	refuse("--limit 500", "--limit " LATENCY "'500'");
	refuse("--limit -1ms", "--limit " LATENCY "'-1ms'");
	refuse("--limit 1us --limit 2us --limit 3us --limit 4us --limit 5us --limit 6us --limit 7us --limit 8us --limit 9us",
	       "there are too many limits at '9us'; 8 is the most");
	refuse("--load nope", "there is no load 'nope'; see rtproof-agent list");
	refuse("--load cpu:speed=9", "load 'cpu' has no option 'speed'");
	refuse("--load cpu:workers=0", "option 'workers' of load 'cpu' takes a whole number from 1 to 4096");
	refuse("--load cpu --load cpu --load cpu --load cpu --load cpu --load cpu --load cpu --load cpu --load cpu --load cpu "
	       "--load cpu --load cpu --load cpu --load cpu --load cpu --load cpu --load sched",
	       "there are too many loads at 'sched'; 16 is the most");
}

static void options_must_fit_together(void)
{
	refuse("--duration 1s", "no place for the record: say -o FILE, or -o - for standard output");
	refuse("-o x", "say how long to measure, with one of --duration and --samples");
	refuse(ENOUGH "--samples 5", "say how long to measure, with one of --duration and --samples");
	refuse("-o x --duration 999us", "the duration is shorter than a period");
	refuse(ENOUGH "--method sleep", "probe 'timer' has no method 'sleep'; see rtproof-agent list");
	refuse(ENOUGH "--method setitimer --threads 2", "method setitimer can serve one thread only; say --threads 1");
	refuse(ENOUGH "--method setitimer --period 1000500ns", "method setitimer counts in microseconds; give such a period");
	refuse(ENOUGH "--policy other --priority 5", "policy other has no priority; leave --priority out");
	refuse(ENOUGH "--timer-slack 1ns", "policy fifo has no timer slack; leave --timer-slack out");
	refuse(ENOUGH "--policy deadline --priority 5", "policy deadline has no priority; leave --priority out");
	refuse(ENOUGH "--policy deadline --period 50us", "policy deadline needs a period of at least 100 us");
	refuse(ENOUGH "--policy deadline --cpus 0", "policy deadline can't be bound to CPUs; leave --cpus out");
}

static void cpus_must_be_there_and_allowed(void)
{
	struct cpus allowed, one = { { 0 } }, now;
	char line[128];

	CHECK(cpus_get_affinity(0, &allowed) == 0);
	int first = cpus_nth(&allowed, 0), second = cpus_nth(&allowed, 1);

	if (sysconf(_SC_NPROCESSORS_CONF) < 4000)
		refuse(ENOUGH "--cpus 4000", "there is no CPU 4000 on this machine");
	if (second < 0)
		return;
	cpus_add(&one, first);
	CHECK(cpus_set_affinity(0, &one) == 0);
	snprintf(line, sizeof(line), ENOUGH "--cpus %d-%d", first, second);
	accept(line); /* isolated CPUs are in no affinity either */
	CHECK(config.threads == 2 && cpus_has(&config.cpus, second));
	CHECK(cpus_get_affinity(0, &now) == 0 && !memcmp(&now, &one, sizeof(one)));
	snprintf(line, sizeof(line), ENOUGH "--probe ipc:sender=other --cpus %d", second);
	accept(line);
	refuse(ENOUGH "--probe ipc:sender=other", "sender=other of probe ipc needs a second CPU");
	accept(ENOUGH "--policy fifo");
	CHECK(config.threads == 1 && cpus_has(&config.cpus, first) && !cpus_has(&config.cpus, second));
	CHECK(cpus_set_affinity(0, &allowed) == 0);
}

static void loads_may_be_bound_to_cpus(void)
{
	struct cpus allowed;
	char line[128];

	CHECK(cpus_get_affinity(0, &allowed) == 0);
	snprintf(line, sizeof(line), ENOUGH "--load cpu:workers=2@%d --load cpu", cpus_nth(&allowed, 0));
	accept(line);
	CHECK(config.loads[0].bound && config.loads[0].order.cpus == 1 && config.loads[0].order.values[0] == 2);
	CHECK(cpus_count(&config.loads[0].cpus) == 1 && cpus_has(&config.loads[0].cpus, cpus_nth(&allowed, 0)));
	CHECK(!config.loads[1].bound && config.loads[1].order.cpus == cpus_count(&allowed));
	if (sysconf(_SC_NPROCESSORS_CONF) < 4000)
		refuse(ENOUGH "--load mmap@4000", "load mmap@4000: there is no CPU 4000 on this machine");
}

int main(void)
{
	sys_init();
	what_is_not_said_has_a_default();
	what_is_said_holds();
	each_thread_may_have_a_period_of_its_own();
	a_run_may_begin_at_a_second_and_end_with_a_latency();
	a_limit_given_twice_is_one();
	options_must_be_known_and_have_their_values();
	values_must_make_sense();
	options_must_fit_together();
	cpus_must_be_there_and_allowed();
	loads_may_be_bound_to_cpus();
	return EXIT_SUCCESS;
}
