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
#include "system/sys.h"

#include "probes/app/plan.h"
#include "system/clock.h"
#include "measure/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACCOUNT_MOST = 512 };

static const char *const fields[] = { "top", "start", "end", NULL };

static const struct method absolute = {
	.name = "absolute",
	.help = "clock_nanosleep() until due times one period apart; none is ever skipped",
	.on_grid = true, .no_deadline = true, .works = true, .fields = fields,
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

struct app {
	struct app_plan plan;
	struct work work;
	struct outputs outputs;
	int64_t due_ns, delay_ns;
	int64_t ended_ns; /* the reading by which the last loop decided whether to sleep */
	int64_t from_ns;  /* due times before it are of the warm-up */
	uint64_t loops, slept, shifted;
};

static int read_plan(const struct method *method, const char *const *values, struct app_plan *plan, char *why, size_t room)
{
	int err = app_plan_read(values, plan, why, room);

	plan->shift |= method->name == shift.name;
	return err;
}

static int app_check(const struct method *method, const char *const *values, int64_t period_ns, char *why, size_t room)
{
	struct app_plan plan;

	(void)period_ns;
	if (read_plan(method, values, &plan, why, room) || outputs_look(&plan.outputs, why, room) ||
	    work_look(&plan.work, why, room))
		return -EINVAL;
	return 0;
}

/* A line can be driven by one thread only. */
static const struct method *app_adapt(const struct method *method, const char *const *values)
{
	static struct method alone;
	struct app_plan plan;
	char why[8];

	read_plan(method, values, &plan, why, sizeof(why));
	alone = plan.shift ? shift : plan.increment_ns ? stretched : *method;
	alone.single = plan.outputs.lines;
	return &alone;
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

static int do_work(struct worker *worker, bool counts)
{
	struct app *app = worker->state;
	int err = outputs_set(&app->outputs, OUTPUT_WORK, true);

	if (!err)
		err = work_do(&app->work, counts, worker->why, sizeof(worker->why));
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
		 (int)(late_ns % 1000), app->plan.stop_above);
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

	err = do_work(worker, counts);
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
	.options = app_options,
	.check = app_check,
	.adapt = app_adapt,
	.open = app_open,
	.take = app_take,
	.close = app_close,
};
