/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "measure/shared.h"

#include <stdarg.h>
#include <stdio.h>

int64_t run_time_ns(const struct run *run)
{
	return clock_now_ns() - run->origin_ns;
}

struct capture *run_captures(const struct run *run, int thread)
{
	return run->captures + (ptrdiff_t)thread * run->config->fields;
}

static void wake_main(struct run *run)
{
	while (write(run->wake_fds[1], "", 1) < 0 && errno == EINTR)
		;
}

void run_ask_to_stop(struct run *run, enum end_reason reason, const char *text)
{
	/* The other reasons have events of their own, which say more. */
	static const char *const kinds[] = {
		[END_INTERRUPTED] = "interrupted", [END_NO_SPACE] = "no_space", [END_HOST_GONE] = "host_gone", [END_ERROR] = NULL,
	};

	pthread_mutex_lock(&run->notices.mutex);
	bool first = !run->notices.stop_asked;

	if (first) {
		run->notices.stop_asked = true;
		run->notices.reason = reason;
		snprintf(run->notices.reason_text, sizeof(run->notices.reason_text), "%s", text);
	}
	pthread_mutex_unlock(&run->notices.mutex);
	if (!first)
		return;
	if (kinds[reason])
		run_note(run, WHOLE_RUN, kinds[reason], "%s", text);
	wake_main(run);
}

void run_note(struct run *run, int thread, const char *kind, const char *format, ...)
{
	va_list arguments;

	pthread_mutex_lock(&run->notices.mutex);
	if (run->notices.n_events == EVENTS_MOST) {
		run->notices.events_dropped++;
	} else {
		struct event *event = &run->notices.events[run->notices.n_events++];

		event->time_ns = clock_now_ns();
		event->thread = thread;
		snprintf(event->kind, sizeof(event->kind), "%s", kind);
		va_start(arguments, format);
		vsnprintf(event->text, sizeof(event->text), format, arguments);
		va_end(arguments);
	}
	pthread_mutex_unlock(&run->notices.mutex);
}

void run_fact(struct run *run, int thread, enum moment moment, const char *key, const char *format, ...)
{
	char value[2048];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	record_fact(&run->record, run_time_ns(run), thread, moment, key, "%s", value);
}

void run_fact_number(struct run *run, int thread, enum moment moment, const char *key, int64_t value)
{
	run_fact(run, thread, moment, key, "%lld", (long long)value);
}
