/* SPDX-License-Identifier: Apache-2.0 */
/* What every probe of the table promises, and how their options are taken apart. */
#include "check.h"

#include "measure/worker.h"
#include "probes/common/cycles.h"
#include "probes/probe.h"
#include "system/clock.h"

#include <errno.h>
#include <string.h>

#define PERIOD_NS 10000000

static char why[256];

static int options_of(const struct probe *probe)
{
	int n = 0;

	while (probe->options && probe->options[n].name) {
		CHECK(probe->options[n].help && !strpbrk(probe->options[n].name, ":=,"));
		n++;
	}
	return n;
}

static void a_method_is_of_one_kind(const struct probe *probe, const struct method *method)
{
	CHECK(method->name && method->help && probe_method(probe, method->name) == method);
	CHECK(method_fields(method) <= FIELDS_MOST);
	CHECK(method->fields || probe->field);
	CHECK(!method->on_grid || !method->external); /* a reader of the record takes both for damage */
	CHECK(!method->from_outside || method->external);
	CHECK(!method->exact || method->external);
	CHECK(!method->keeps_period || method->external);
}

static void probes_keep_within_what_there_is_room_for(void)
{
	for (const struct probe *const *probe = probes; *probe; probe++) {
		CHECK((*probe)->name && (*probe)->help && (*probe)->unit);
		CHECK(options_of(*probe) <= PROBE_OPTIONS);
		for (const struct method *const *method = (*probe)->methods; *method; method++)
			a_method_is_of_one_kind(*probe, *method);
	}
}

static const struct probe *parsed;
static const char *values[PROBE_OPTIONS];

static int parse(const char *given)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s", given);
	memset(values, 0, sizeof(values));
	return probe_parse(text, &parsed, values, why, sizeof(why));
}

static void options_are_found_by_their_names(void)
{
	CHECK(parse("cycle") == 0 && parsed == probe_find("cycle") && !values[0] && !values[2]);
	CHECK(parse("cycle:high=2ms,ignore=7") == 0);
	CHECK(!strcmp(values[0], "7") && !values[1] && !strcmp(values[2], "2ms"));
	CHECK(parse("cycle:ignore=1,ignore=2") == 0 && !strcmp(values[0], "2"));
	CHECK(parse("nothing:ignore=7") == -EINVAL && strstr(why, "no probe 'nothing'"));
	CHECK(parse("cycle:wide=1ms") == -EINVAL && strstr(why, "has no option 'wide'"));
	CHECK(parse("cycle:ignore") == -EINVAL && strstr(why, "option 'ignore' of probe 'cycle' needs a value"));
	CHECK(parse("timer:ignore=7") == -EINVAL && strstr(why, "has no option 'ignore'"));
}

static const char *refusal(const char *ignore, const char *low, const char *high)
{
	const char *const bounds[] = { ignore, low, high };

	*why = '\0';
	CHECK((band_check(bounds, PERIOD_NS, why, sizeof(why)) == -EINVAL) == !!*why);
	return why;
}

static void bounds_of_cycles_leave_the_period_between_them(void)
{
	CHECK(!*refusal(NULL, NULL, NULL));
	CHECK(!*refusal("0", "0ms", "1h"));
	CHECK(!*refusal("1000", "10ms", "10ms"));
	CHECK(strstr(refusal("-1", NULL, NULL), "takes a number of cycles, not '-1'"));
	CHECK(strstr(refusal("2147483648", NULL, NULL), "'ignore'"));
	CHECK(strstr(refusal(NULL, "10.001ms", NULL), "'low' takes a time with its unit that is not above the period"));
	CHECK(strstr(refusal(NULL, "9", NULL), "'low'"));
	CHECK(strstr(refusal(NULL, NULL, "9.999ms"), "'high' takes a time with its unit that is not below the period"));
	CHECK(strstr(refusal(NULL, "9ms", "ten"), "not 'ten'"));
}

/* No activation comes that could end it, and whoever waits for a thread that does not end waits for seconds. */
static void the_foreign_probe_ends_with_the_run(void)
{
	static struct worker worker;
	static struct cpus cpus;
	const struct probe *foreign = probe_find("foreign");
	const char *const none[PROBE_OPTIONS] = { NULL };
	struct activation activation;

	CHECK(cpus_get_affinity(0, &cpus) == 0);
	worker.cpus = &cpus;
	worker.options = none;
	worker.duration_ns = PERIOD_NS;
	CHECK(foreign->open(&worker, foreign->methods[0], clock_now_ns(), PERIOD_NS) == 0);
	CHECK(foreign->take(&worker, &activation) == -EINTR && worker.stop == 1);
	foreign->close(&worker);
	worker.stop = 0;
	worker.duration_ns = INT64_MAX;
	CHECK(foreign->open(&worker, foreign->methods[0], clock_now_ns(), PERIOD_NS) == 0);
	CHECK(foreign->take(&worker, &activation) == -EINTR && worker.stop == 0);
	foreign->close(&worker);
}

int main(void)
{
	probes_keep_within_what_there_is_room_for();
	options_are_found_by_their_names();
	bounds_of_cycles_leave_the_period_between_them();
	the_foreign_probe_ends_with_the_run();
	return EXIT_SUCCESS;
}
