/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The app probe: article 3's test program. A loop sleeps until an absolute time, works, and goes on; if its next time has passed
 * by then, it does not sleep. It never skips a due time: a loop that is late runs the next ones at once until it has caught up,
 * unless the target shifts.
 *
 * The clock is read three times in a loop: at its top, before the work and behind it. By the last reading it decides whether to
 * sleep, so what the record derives from it (slept or not, slack) is what happened. Driving an output comes behind the first
 * reading and so is in no lateness of the top; that of the work is in its duration.
 */
#include "../sys.h"

#include "../app_outputs.h"
#include "../app_work.h"
#include "../clock.h"
#include "../probe.h"
#include "../text.h"
#include "../worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMMENT, WORK, SHIFT, INCREMENT, STOP_ABOVE, PREFAULT, SENSOR, USLEEP_US, SIEVE_TO, MEMORY_KIB, BUSY_US, BUSY_EVERY, CHIP,
	LINES, MARKS,
};
enum { ACCOUNT_MOST = 512, LINE_MOST = 65535, YEAR_DAYS = 366 };

static const struct probe_option options[] = {
	{ "comment", "words for the first line of the exported CSV, without a comma" },
	{ "work", "what each loop does, joined by +: outputs, sensor, usleep, sieve, memory, lock, busy (none)" },
	{ "shift", "yes: a target that was missed moves to now, so that the next loop is whole (no; or method shift)" },
	{ "increment", "by how much each delay is longer than the one before (0us)" },
	{ "stop_above", "end the run when a loop begins later than this" },
	{ "prefault", "no: do not touch the work's memory beforehand (needs --no-lock-memory to mean anything)" },
	{ "sensor", "file that work=sensor reads (/sys/class/hwmon/hwmon0/temp1_input)" },
	{ "usleep_us", "microseconds that work=usleep sleeps (1)" },
	{ "sieve_to", "last number of work=sieve (100000)" },
	{ "memory_kib", "size of what work=memory walks through (256)" },
	{ "busy_us", "microseconds that work=busy spins on the clock" },
	{ "busy_every", "loops of which the last one is busy (1)" },
	{ "chip", "GPIO chip of the lines: its number, label or /dev/gpiochipN; none: numbers of the whole system" },
	{ "lines", "lines of work=outputs, as in 3+4+5: work active, sleep active, no sleep (none: pulses are counted)" },
	{ "marks", "yes: work=outputs marks its pulses in the kernel's trace (no)" },
	{ NULL, NULL },
};

static const char *const fields[] = { "top", "start", "end", NULL };

static const struct method absolute = {
	.name = "absolute",
	.help = "clock_nanosleep() until due times one period apart; none is ever skipped",
	.on_grid = true, .no_deadline = true, .fields = fields,
};
static const struct method shift = {
	.name = "shift",
	.help = "absolute, but a target that was missed moves to now",
	.external = true, .exact = true, .no_deadline = true, .fields = fields,
};
/* What absolute becomes with increment=. */
static const struct method stretched = {
	.name = "increment",
	.help = "absolute with growing delays",
	.external = true, .exact = true, .no_deadline = true, .fields = fields,
};

static const struct method *const methods[] = { &absolute, &shift, NULL };

struct plan {
	struct work_order work;
	struct outputs_order outputs;
	bool shift;
	int64_t increment_ns, stop_above_ns; /* 0: never */
};

struct app {
	struct plan plan;
	struct work work;
	struct outputs outputs;
	int64_t due_ns, delay_ns;
	int64_t ended_ns; /* the reading by which the last loop decided whether to sleep */
	int64_t from_ns;  /* due times before it are of the warm-up */
	uint64_t loops, slept, shifted;
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
		snprintf(reader->why, reader->room, "%s= of probe app takes %s, not '%s'", options[option].name, takes,
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
			 options[belongings[i].option].name, work_name(belongings[i].unit));
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

/* 0, or -EINVAL with a sentence in why. */
static int read_plan(const struct method *method, const char *const *values, struct plan *plan, char *why, size_t room)
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
	plan->shift = yes(&reader, SHIFT, false) || method == &shift;
	plan->increment_ns = length_ns(&reader, INCREMENT);
	plan->stop_above_ns = length_ns(&reader, STOP_ABOVE);
	return reader.wrong ? -EINVAL : 0;
}

static int app_check(const struct method *method, const char *const *values, int64_t period_ns, char *why, size_t room)
{
	struct plan plan;

	(void)period_ns;
	if (read_plan(method, values, &plan, why, room) || outputs_look(&plan.outputs, why, room) ||
	    work_look(&plan.work, why, room))
		return -EINVAL;
	return 0;
}

static const struct method *app_adapt(const struct method *method, const char *const *values)
{
	struct plan plan;
	char why[8];

	if (read_plan(method, values, &plan, why, sizeof(why)) || plan.shift)
		return &shift;
	return plan.increment_ns ? &stretched : method;
}

static int app_open(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns)
{
	struct app *app = calloc(1, sizeof(*app));

	if (!app)
		return -ENOMEM;
	worker->state = app;
	app->outputs.marks_fd = app->work.sensor_fd = -1;
	app->due_ns = first_due_ns;
	app->delay_ns = period_ns;
	app->from_ns = first_due_ns + worker->warmup_ns / period_ns * period_ns;
	int err = read_plan(method, worker->options, &app->plan, worker->why, sizeof(worker->why));

	if (!err)
		err = work_open(&app->work, &app->plan.work, worker->why, sizeof(worker->why));
	return err ? err : outputs_open(&app->outputs, &app->plan.outputs, worker->why, sizeof(worker->why));
}

static int sleep_until_due(struct app *app, int64_t *top_ns)
{
	int err = outputs_set(&app->outputs, OUTPUT_SLEEP, true);

	if (!err)
		err = sys_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, app->due_ns);
	*top_ns = clock_now_ns();
	int low = outputs_set(&app->outputs, OUTPUT_SLEEP, false);

	app->slept += !err;
	return err ? err : low;
}

static int pulse_no_sleep(struct app *app, int64_t *top_ns)
{
	*top_ns = clock_now_ns();
	int err = outputs_set(&app->outputs, OUTPUT_NO_SLEEP, true);

	return err ? err : outputs_set(&app->outputs, OUTPUT_NO_SLEEP, false);
}

static int do_work(struct app *app, bool counts)
{
	int err = outputs_set(&app->outputs, OUTPUT_WORK, true);

	if (!err)
		err = work_do(&app->work, counts);
	int low = outputs_set(&app->outputs, OUTPUT_WORK, false);

	return err ? err : low;
}

/* When the next loop is due: a delay later, or now if the target shifts and that has passed. */
static void aim(struct worker *worker, bool counts)
{
	struct app *app = worker->state;

	app->due_ns += app->delay_ns;
	if (counts)
		app->delay_ns += app->plan.increment_ns;
	if (app->plan.shift && app->due_ns <= app->ended_ns) {
		app->due_ns = app->ended_ns;
		app->shifted++;
	}
	worker->aim_ns = app->due_ns;
}

static void judge(struct worker *worker, int64_t late_ns)
{
	const struct app *app = worker->state;

	if (!app->plan.stop_above_ns || late_ns <= app->plan.stop_above_ns)
		return;
	worker->ended = true;
	snprintf(worker->why, sizeof(worker->why), "a loop began %lld.%03d us late, and stop_above is %s", (long long)late_ns / 1000,
		 (int)(late_ns % 1000), worker->options[STOP_ABOVE]);
}

static int app_take(struct worker *worker, struct activation *activation)
{
	struct app *app = worker->state;
	bool counts = app->due_ns >= app->from_ns;
	int64_t due_ns = app->due_ns, top_ns;
	int err = app->ended_ns < due_ns ? sleep_until_due(app, &top_ns) : pulse_no_sleep(app, &top_ns);

	if (err)
		return err;
	int64_t start_ns = clock_now_ns();

	err = do_work(app, counts);
	if (err)
		worker->failed_at = "do its work";
	app->ended_ns = clock_now_ns();
	*activation = (struct activation){
		.due_ns = due_ns, .values = { top_ns - due_ns, start_ns - due_ns, app->ended_ns - due_ns } };
	app->loops++;
	aim(worker, counts);
	if (counts)
		judge(worker, top_ns - due_ns);
	return err;
}

static void leave_account(struct worker *worker)
{
	const struct app *app = worker->state;
	struct probe_file *file = &worker->files[worker->n_files];
	const uint64_t *pulses = app->outputs.pulses;

	file->content = malloc(ACCOUNT_MOST);
	if (!file->content)
		return;
	snprintf(file->path, sizeof(file->path), "app/thread%d", worker->number);
	file->length = (size_t)snprintf(file->content, ACCOUNT_MOST,
		"loops %llu\nslept %llu\nshifted %llu\npulses_work %llu\npulses_sleep %llu\npulses_no_sleep %llu\nprimes %u\n"
		"sensed %.*s\n",
		(unsigned long long)app->loops, (unsigned long long)app->slept, (unsigned long long)app->shifted,
		(unsigned long long)pulses[OUTPUT_WORK], (unsigned long long)pulses[OUTPUT_SLEEP],
		(unsigned long long)pulses[OUTPUT_NO_SLEEP], app->work.primes, (int)strcspn(app->work.sensed, "\n"),
		app->work.sensed);
	worker->n_files++;
}

static void app_close(struct worker *worker)
{
	struct app *app = worker->state;

	if (!app)
		return;
	if (app->loops)
		leave_account(worker);
	outputs_close(&app->outputs);
	work_close(&app->work);
	free(app);
	worker->state = NULL;
}

const struct probe probe_app = {
	.name = "app",
	.help = "a periodic application's loop: when it wakes, when its work begins and ends, and whether it could sleep",
	.field = "end",
	.unit = "ns",
	.methods = methods,
	.options = options,
	.check = app_check,
	.adapt = app_adapt,
	.open = app_open,
	.take = app_take,
	.close = app_close,
};
