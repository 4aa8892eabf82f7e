/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/app/plan.h"

#include "system/clock.h"
#include "system/text.h"

#include <stdio.h>
#include <string.h>

enum {
	COMMENT, WORK, SHIFT, INCREMENT, STOP_ABOVE, PREFAULT, SENSOR, USLEEP_US, SIEVE_TO, MEMORY_KIB, BUSY_US, BUSY_EVERY, CHIP,
	LINES, MARKS,
};
enum { LINE_MOST = 65535, YEAR_DAYS = 366 };

const struct probe_option app_options[] = {
	{ "comment", "words for the first line of the exported CSV, without a comma" },
	{ "work", "what each loop does, joined by +: outputs, sensor, usleep, sieve, memory, lock, busy (none)" },
	{ "shift", "yes: a target that was missed moves to now, so that the next loop is whole (no; or method shift)" },
	{ "increment", "by how much each delay is longer than the one before (0us)" },
	{ "stop_above", "end the run when a loop begins later than this" },
	{ "prefault", "no: do not touch the work's memory beforehand (only with --no-lock-memory)" },
	{ "sensor", "file that work=sensor reads (/sys/class/hwmon/hwmon0/temp1_input)" },
	{ "usleep_us", "microseconds that work=usleep sleeps (1)" },
	{ "sieve_to", "last number of work=sieve (100000)" },
	{ "memory_kib", "size of what work=memory walks through (256)" },
	{ "busy_us", "microseconds that work=busy spins on the clock" },
	{ "busy_every", "work=busy spins in every Nth loop (1)" },
	{ "chip", "GPIO chip of the lines: its number, label or /dev/gpiochipN; none: numbers of the whole system" },
	{ "lines", "lines of work=outputs, as in 3+4+5: work active, sleep active, no sleep (none: pulses are counted)" },
	{ "marks", "yes: work=outputs marks its pulses in the kernel's trace (no)" },
	{ NULL, NULL },
};

/* Options that mean something with one kind of work only. */
static const struct {
	int option;
	enum work_unit unit;
} belongings[] = {
	{ SENSOR, WORK_SENSOR }, { USLEEP_US, WORK_USLEEP }, { SIEVE_TO, WORK_SIEVE }, { MEMORY_KIB, WORK_MEMORY },
	{ BUSY_US, WORK_BUSY }, { BUSY_EVERY, WORK_BUSY }, { CHIP, WORK_OUTPUTS }, { LINES, WORK_OUTPUTS }, { MARKS, WORK_OUTPUTS },
};

struct reader {
	const char *const *values;
	char *why;
	size_t room;
	bool wrong; /* why has a sentence */
};

static void refuse(struct reader *reader, int option, const char *takes)
{
	if (!reader->wrong)
		snprintf(reader->why, reader->room, "%s= of probe app takes %s, not '%s'", app_options[option].name, takes,
			 reader->values[option]);
	reader->wrong = true;
}

static int64_t number(struct reader *reader, int option, int64_t otherwise, int64_t least, int64_t most)
{
	const char *text = reader->values[option];
	char takes[64];
	int64_t value = otherwise;

	if (!text || !text_number(text, least, most, &value))
		return value;
	snprintf(takes, sizeof(takes), "a whole number from %lld to %lld", (long long)least, (long long)most);
	refuse(reader, option, takes);
	return otherwise;
}

static int64_t length_ns(struct reader *reader, int option)
{
	const char *text = reader->values[option];
	int64_t ns = 0;

	if (text && (text_duration_ns(text, &ns) || ns > YEAR_DAYS * (86400 * NS_PER_SECOND)))
		refuse(reader, option, "a number with a unit (ns, us, ms, s), such as 500us");
	return ns;
}

static bool yes(struct reader *reader, int option, bool otherwise)
{
	const char *text = reader->values[option];

	if (text && strcmp(text, "yes") && strcmp(text, "no"))
		refuse(reader, option, "yes or no");
	return text ? !strcmp(text, "yes") : otherwise;
}

static void read_lines(struct reader *reader, struct outputs_order *outputs)
{
	const char *text = reader->values[LINES];
	char word[8];

	outputs->lines = text != NULL;
	for (int i = 0; text && i < OUTPUTS; i++) {
		int64_t line;
		size_t length = strcspn(text, "+");
		const char *end = text + length;

		snprintf(word, sizeof(word), "%.*s", (int)(length < 7 ? length : 7), text);
		if (text_number(word, 0, LINE_MOST, &line) || (*end == '+') != (i < OUTPUTS - 1)) {
			refuse(reader, LINES, "three numbers of lines, such as 3+4+5");
			return;
		}
		outputs->line[i] = (uint32_t)line;
		text = end + 1;
	}
	if (text && (outputs->line[0] == outputs->line[1] || outputs->line[1] == outputs->line[2] ||
		     outputs->line[0] == outputs->line[2]))
		refuse(reader, LINES, "three different lines");
}

static void read_work(struct reader *reader, struct work_order *work)
{
	const char *const *values = reader->values;

	if (values[WORK] && !reader->wrong)
		reader->wrong = work_units(values[WORK], &work->units, reader->why, reader->room);
	for (size_t i = 0; i < sizeof(belongings) / sizeof(*belongings) && !reader->wrong; i++) {
		if (!values[belongings[i].option] || work_has(work, belongings[i].unit))
			continue;
		snprintf(reader->why, reader->room, "%s= of probe app is for work=%s, which is not asked for",
			 app_options[belongings[i].option].name, work_name(belongings[i].unit));
		reader->wrong = true;
	}
	if (work_has(work, WORK_BUSY) && !values[BUSY_US] && !reader->wrong) {
		snprintf(reader->why, reader->room, "work=busy of probe app needs busy_us=, such as busy_us=500");
		reader->wrong = true;
	}
	work->sensor = values[SENSOR] ? values[SENSOR] : "/sys/class/hwmon/hwmon0/temp1_input";
	work->usleep_us = number(reader, USLEEP_US, 1, 0, 1000000);
	work->sieve_to = number(reader, SIEVE_TO, 100000, 2, 100000000);
	work->memory_kib = number(reader, MEMORY_KIB, 256, 1, 1048576);
	work->busy_us = number(reader, BUSY_US, 0, 1, 1000000);
	work->busy_every = number(reader, BUSY_EVERY, 1, 1, 1000000000);
	work->untouched = !yes(reader, PREFAULT, true);
}

int app_plan_read(const char *const *values, struct app_plan *plan, char *why, size_t room)
{
	struct reader reader = { values, why, room, false };

	memset(plan, 0, sizeof(*plan));
	read_work(&reader, &plan->work);
	plan->outputs.wanted = work_has(&plan->work, WORK_OUTPUTS);
	plan->outputs.chip = values[CHIP];
	plan->outputs.marks = yes(&reader, MARKS, false);
	read_lines(&reader, &plan->outputs);
	if (values[CHIP] && !values[LINES])
		refuse(&reader, CHIP, "a GPIO chip together with lines=");
	plan->shift = yes(&reader, SHIFT, false);
	plan->increment_ns = length_ns(&reader, INCREMENT);
	plan->stop_above_ns = length_ns(&reader, STOP_ABOVE);
	plan->stop_above = values[STOP_ABOVE];
	return reader.wrong ? -EINVAL : 0;
}
