/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of edges: answers in order, late, lost and not at all. Real lines are in tests/test_probe_gpio.py. */
#include "system/sys.h"

#include "probes/gpio/lines.h"
#include "probes/gpio/pulses.h"
#include "probes/common/stimulus.h"

#include "check.h"

#include <string.h>

#if __has_include(<linux/gpio.h>)
#include <linux/gpio.h>
#ifdef GPIO_V2_GET_LINE_IOCTL
#define ALIKE(ours, theirs, last, their_last)                                                   \
	_Static_assert(sizeof(struct ours) == sizeof(struct theirs) &&                          \
			       offsetof(struct ours, last) == offsetof(struct theirs, their_last), \
		       #ours " is not what the kernel's header says")
ALIKE(uapi_chip, gpiochip_info, lines, lines);
ALIKE(uapi_line1, gpioline_info, consumer, consumer);
ALIKE(uapi_request1, gpiohandle_request, fd, fd);
ALIKE(uapi_edges1, gpioevent_request, fd, fd);
ALIKE(uapi_levels1, gpiohandle_data, levels, values);
ALIKE(uapi_event1, gpioevent_data, id, id);
ALIKE(uapi_line2, gpio_v2_line_info, flags, flags);
ALIKE(uapi_config2, gpio_v2_line_config, attributes, attrs);
ALIKE(uapi_request2, gpio_v2_line_request, fd, fd);
ALIKE(uapi_levels2, gpio_v2_line_values, lines, mask);
ALIKE(uapi_event2, gpio_v2_line_event, number_of_line, line_seqno);
_Static_assert(UAPI_CHIP == GPIO_GET_CHIPINFO_IOCTL && UAPI1_LINE == GPIO_GET_LINEINFO_IOCTL, "chip and line");
_Static_assert(UAPI1_REQUEST == GPIO_GET_LINEHANDLE_IOCTL && UAPI1_EDGES == GPIO_GET_LINEEVENT_IOCTL, "requests, v1");
_Static_assert(UAPI1_GET == GPIOHANDLE_GET_LINE_VALUES_IOCTL && UAPI1_SET == GPIOHANDLE_SET_LINE_VALUES_IOCTL, "levels, v1");
_Static_assert(UAPI2_LINE == GPIO_V2_GET_LINEINFO_IOCTL && UAPI2_REQUEST == GPIO_V2_GET_LINE_IOCTL, "line and request, v2");
_Static_assert(UAPI2_GET == GPIO_V2_LINE_GET_VALUES_IOCTL && UAPI2_SET == GPIO_V2_LINE_SET_VALUES_IOCTL, "levels, v2");
#endif
#endif

#define PERIOD_NS 1000000LL
#define FIRST_NS 5000000000LL

static struct stimulus stimulus;
static struct activation activation;

static void begin(bool both)
{
	stimulus = (struct stimulus){ .due_ns = FIRST_NS, .period_ns = PERIOD_NS, .both = both, .level = true };
}

/* Gives the next edge so long after its due time, and takes its answer so long after that. */
static void one(int64_t late_ns, int64_t value_ns)
{
	stimulus_give(&stimulus, stimulus.due_ns + late_ns);
	CHECK(stimulus_takes(&stimulus, stimulus.given_ns + value_ns, stimulus.level));
	stimulus_end(&stimulus, value_ns, true, &activation);
}

static void expect(int64_t index, uint32_t lost, uint32_t missed)
{
	CHECK(activation.due_ns == FIRST_NS + index * PERIOD_NS && activation.lost == lost && activation.missed == missed);
	CHECK(stimulus.due_ns == activation.due_ns + (1 + missed) * PERIOD_NS && stimulus.given_ns == 0);
}

static void answers_in_order_are_one_for_each_due_time(void)
{
	begin(true);
	for (int i = 0; i < 4; i++) {
		CHECK(stimulus.level == (i % 2 == 0));
		one(700, 20000);
		expect(i, 0, 0);
	}
	CHECK(stimulus.given == 4 && stimulus.answered == 4 && !stimulus.unanswered && !stimulus.strays);
}

/* The answer to the first comes after three more due times: it is no answer to any of these, and they had none. */
static void a_late_answer_is_that_to_the_oldest(void)
{
	begin(true);
	one(0, 3 * PERIOD_NS + 5);
	expect(0, 0, 3);
	one(0, 10);
	expect(4, 0, 0);
	one(PERIOD_NS - 1, PERIOD_NS - 1); /* behind the next due time, but not a period late */
	expect(5, 0, 0);
	stimulus_give(&stimulus, activation.due_ns + 2 * PERIOD_NS - 2);
	CHECK(stimulus.skipped == 0);
}

static void edges_that_answer_nothing_are_strays(void)
{
	begin(true);
	stimulus_give(&stimulus, FIRST_NS + 10);
	CHECK(!stimulus_takes(&stimulus, FIRST_NS + 9, true)); /* before */
	CHECK(!stimulus_takes(&stimulus, FIRST_NS + 11, false) && stimulus.strays == 2);
	CHECK(stimulus_takes(&stimulus, FIRST_NS + 12, true) && stimulus_takes(&stimulus, 0, true) && stimulus.strays == 2);
}

/* Edges of one kind are answered by a change, and are always the same. */
static void an_answer_to_edges_of_one_kind_has_any_level(void)
{
	begin(false);
	stimulus_give(&stimulus, FIRST_NS + 10);
	CHECK(stimulus_takes(&stimulus, FIRST_NS + 11, false) && stimulus.strays == 0);
	stimulus_end(&stimulus, 1, true, &activation);
	CHECK(stimulus.level);
}

static void an_edge_that_could_not_be_given_is_lost_and_not_missed(void)
{
	begin(true);
	one(0, 10);
	one(2 * PERIOD_NS + 3, 20);
	expect(3, 2, 0);
	one(0, 30);
	expect(4, 0, 0);
}

/* Longer than five periods: so much is known. The same edge comes again. */
static void no_answer_is_worth_the_time_it_was_waited_for(void)
{
	begin(true);
	stimulus_give(&stimulus, FIRST_NS);
	stimulus_end(&stimulus, 5 * PERIOD_NS + 7, false, &activation);
	expect(0, 0, 5);
	CHECK(stimulus.unanswered == 1 && stimulus.answered == 0 && stimulus.level);
	one(0, 10);
	expect(6, 0, 0);
	CHECK(!stimulus.level);
}

static struct gpio gpio;
static struct gpio_edge edge;

static void version_2_counts_what_it_lost(void)
{
	const uint32_t numbers[] = { 1, 2, 7, 8 }, lost[] = { 0, 0, 4, 0 };

	gpio = (struct gpio){ .n = 4, .number = 1 };
	for (int i = 0; i < 4; i++)
		gpio.events.v2[i] = (struct uapi_event2){ .time_ns = FIRST_NS + (uint64_t)i, .id = i % 2 ? 2 : 1,
							  .number = 90, .number_of_line = numbers[i] };
	for (int i = 0; i < 4; i++) {
		gpio_take_v2(&gpio, &edge);
		CHECK(edge.edge_ns == FIRST_NS + i && edge.level == (i % 2 == 0) && edge.lost == lost[i]);
	}
	CHECK(gpio.next == gpio.n);
	gpio.next = 0;
	gpio.number = UINT32_MAX;
	gpio.events.v2[0].number_of_line = 2;
	gpio_take_v2(&gpio, &edge);
	CHECK(edge.lost == 3); /* those numbered UINT32_MAX, 0 and 1 */
}

static void version_1_loses_behind_a_full_batch(void)
{
	gpio = (struct gpio){ .n = 2, .dropped = 3 };
	gpio.events.v1[0] = (struct uapi_event1){ .time_ns = 11, .id = 2 };
	gpio.events.v1[1] = (struct uapi_event1){ .time_ns = 12, .id = 1 };
	gpio_take_v1(&gpio, &edge);
	CHECK(edge.edge_ns == 11 && !edge.level && edge.lost == 3);
	gpio_take_v1(&gpio, &edge);
	CHECK(edge.edge_ns == 12 && edge.level && edge.lost == 0);

	CHECK(gpio_dropped(GPIO_BATCH - 1, FIRST_NS, FIRST_NS + 9 * PERIOD_NS, PERIOD_NS) == 0);
	CHECK(gpio_dropped(GPIO_BATCH, FIRST_NS, FIRST_NS + PERIOD_NS - 1, PERIOD_NS) == 0);
	CHECK(gpio_dropped(GPIO_BATCH, FIRST_NS, FIRST_NS + 9 * PERIOD_NS, PERIOD_NS) == 9);
	CHECK(gpio_dropped(GPIO_BATCH, FIRST_NS, FIRST_NS - 1, PERIOD_NS) == 0);
}

static const struct probe *probe;
static const char *values[PROBE_OPTIONS];
static char why[512];

/* Options in their order; what is wrong with them, or an empty string. */
static const char *refusal(const char *chip, const char *in, const char *out, const char *back, const char *edges)
{
	const char *const given[] = { chip, in, out, back, edges };

	memcpy(values, given, sizeof(given));
	*why = '\0';
	CHECK((probe->check(probe->methods[0], values, 1000000, why, sizeof(why)) == -EINVAL) == !!*why);
	return why;
}

static void options_must_make_sense(void)
{
	CHECK(strstr(refusal("0", NULL, "2", NULL, NULL), "needs its two lines"));
	CHECK(strstr(refusal("0", "3", NULL, NULL, NULL), "needs its two lines"));
	CHECK(strstr(refusal("0", "three", "2", NULL, NULL), "whole numbers"));
	CHECK(strstr(refusal("0", "3", "-2", NULL, NULL), "whole numbers"));
	CHECK(strstr(refusal("0", "3", "3", NULL, NULL), "two lines"));
	CHECK(strstr(refusal("0", "3", "2", "v3", NULL), "back="));
	CHECK(strstr(refusal("0", "3", "2", NULL, "up"), "edge="));
	CHECK(strstr(refusal("0", "3", "2", NULL, ""), "edge="));
	CHECK(strstr(refusal("0", "3", "2", "sysfs", NULL), "leave chip= out"));
	CHECK(strstr(refusal("/dev/null", "3", "2", NULL, NULL), "'/dev/null'")); /* emulators know no such call */
	CHECK(strstr(refusal("nowhere", "3", "2", NULL, NULL), "there is no GPIO chip 'nowhere'; there are: "));
	if (!gpio_has_sysfs())
		CHECK(strstr(refusal(NULL, "3", "2", "sysfs", NULL), "/sys/class/gpio"));
}

/* Of a pattern for a method. */
static const char *pattern_refusal(const char *method, const char *chip, const char *pattern)
{
	const char *const given[PROBE_OPTIONS] = { chip, "3", "2", NULL, NULL, NULL, NULL, pattern };

	*why = '\0';
	CHECK((probe->check(probe_method(probe, method), given, 1000000, why, sizeof(why)) == -EINVAL) == !!*why);
	return why;
}

static void a_pattern_is_for_the_board_that_gives_edges(void)
{
	static const char *const with[PROBE_OPTIONS] = { "0", "3", "2", NULL, NULL, NULL, NULL, "yes" };
	static const char *const without[PROBE_OPTIONS] = { "0", "3", "2", NULL, NULL, NULL, NULL, "no" };
	const struct method *method = probe_method(probe, "generate"), *other = probe->adapt(method, with);

	CHECK(strstr(pattern_refusal("generate", "0", "some"), "pattern= of probe gpio is yes or no"));
	CHECK(strstr(pattern_refusal("wire", "0", "yes"), "for --method generate"));
	CHECK(strstr(pattern_refusal("respond", "0", "yes"), "for --method generate"));
	CHECK(probe->adapt(method, without) == method);
	CHECK(other->exact && other->external && other->single && !other->on_grid);
	CHECK(other->from_outside == method->from_outside && method_fields(other) == method_fields(method));
	CHECK(!strcmp(other->name, "generate_pattern"));
}

static void without_times_there_are_fewer_fields(void)
{
	static const char *const with_chip[PROBE_OPTIONS] = { "0" }, *const without[PROBE_OPTIONS] = { NULL };
	static const struct {
		const char *name, *by_sysfs;
		int fields, fields_by_sysfs;
	} expected[] = { { "respond", "respond_sysfs", 2, 1 }, { "generate", "generate", 1, 1 }, { "wire", "wire_sysfs", 2, 1 } };

	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		const struct method *method = probe_method(probe, expected[i].name), *other;

		CHECK(method && probe->adapt(method, with_chip) == method && method_fields(method) == expected[i].fields);
		other = probe->adapt(method, without);
		CHECK(!strcmp(other->name, expected[i].by_sysfs) && method_fields(other) == expected[i].fields_by_sysfs);
		CHECK(other->on_grid == method->on_grid && other->external == method->external && other->single);
	}
}

static struct pulses pulses;
static struct pulse last;

static bool edge_at(int64_t edge_ns, bool level, uint32_t lost)
{
	return pulses_take(&pulses, &(struct gpio_edge){ .edge_ns = edge_ns, .level = level, .lost = lost }, &last);
}

/* A whole pulse that is so long; answers whether the one before is whole with it. */
static bool pulse(int64_t start_ns, int64_t length_ns)
{
	bool whole = edge_at(start_ns, pulses.level, 0);

	CHECK(!edge_at(start_ns + length_ns, !pulses.level, 0));
	return whole;
}

static void expect_pulse(int64_t start_ns, int64_t length_ns, int64_t period_ns, uint32_t lost, uint32_t missing)
{
	CHECK(last.start_ns == start_ns && last.lost == lost && last.missing == missing);
	CHECK(last.length_ns == length_ns && last.period_ns == period_ns);
}

static void a_pulse_is_whole_when_the_next_begins(void)
{
	for (int level = 0; level < 2; level++) {
		pulses = (struct pulses){ .period_ns = PERIOD_NS, .level = level };
		CHECK(!edge_at(FIRST_NS - 100, !level, 0)); /* the end of one that began before */
		CHECK(!pulse(FIRST_NS, 200));
		CHECK(pulse(FIRST_NS + PERIOD_NS + 7, 300));
		expect_pulse(FIRST_NS, 200, PERIOD_NS + 7, 0, 0);
		CHECK(pulse(FIRST_NS + 2 * PERIOD_NS, 300));
		expect_pulse(FIRST_NS + PERIOD_NS + 7, 300, PERIOD_NS - 7, 0, 0);
		CHECK(pulses.seen == 3 && pulses.missing == 0);
	}
}

static void periods_without_a_pulse_are_missing(void)
{
	pulses = (struct pulses){ .period_ns = PERIOD_NS, .level = true };
	pulse(FIRST_NS, 200);
	CHECK(pulse(FIRST_NS + PERIOD_NS * 3 / 2 - 1, 200)); /* late, and none is missing */
	expect_pulse(FIRST_NS, 200, PERIOD_NS * 3 / 2 - 1, 0, 0);
	CHECK(pulse(FIRST_NS + 4 * PERIOD_NS, 200));
	CHECK(last.missing == 2 && pulses.missing == 2);
}

static void pulses_that_the_kernel_lost_are_not_missing(void)
{
	pulses = (struct pulses){ .period_ns = PERIOD_NS, .level = true };
	pulse(FIRST_NS, 200);
	CHECK(!edge_at(FIRST_NS + 5 * PERIOD_NS, true, 8));
	CHECK(!edge_at(FIRST_NS + 5 * PERIOD_NS + 250, false, 0));
	CHECK(pulse(FIRST_NS + 6 * PERIOD_NS, 200));
	expect_pulse(FIRST_NS + 5 * PERIOD_NS, 250, PERIOD_NS, 5, 0);
	CHECK(pulses.missing == 0);
}

int main(void)
{
	a_pulse_is_whole_when_the_next_begins();
	periods_without_a_pulse_are_missing();
	pulses_that_the_kernel_lost_are_not_missing();
	answers_in_order_are_one_for_each_due_time();
	a_late_answer_is_that_to_the_oldest();
	edges_that_answer_nothing_are_strays();
	an_answer_to_edges_of_one_kind_has_any_level();
	an_edge_that_could_not_be_given_is_lost_and_not_missed();
	no_answer_is_worth_the_time_it_was_waited_for();
	version_2_counts_what_it_lost();
	version_1_loses_behind_a_full_batch();
	probe = probe_find("gpio");
	CHECK(probe);
	options_must_make_sense();
	a_pattern_is_for_the_board_that_gives_edges();
	without_times_there_are_fewer_fields();
	return EXIT_SUCCESS;
}
