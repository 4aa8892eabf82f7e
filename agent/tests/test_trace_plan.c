/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/plan.h"
#include "trace/tracefs.h"

#include "system/folder.h"

#include "check.h"

#include <string.h>

enum { KIB = 1024, FOURS = 64 };

static const char kernel_has[] = "irq:irq_handler_entry\0irq:irq_handler_exit\0sched:sched_switch\0sched:sched_wakeup\0"
				 "sched:sched_wakeup_new\0other:sched_switch\0nonsense\0";
static struct trace_plan of_trace, *const trace = &of_trace;
static char why[256];
static enum timer_interrupt timer = TIMER_UNKNOWN; /* of the kernel for has() */
static bool probes_faults;

static int plan(const char *text)
{
	memset(trace, 0, sizeof(*trace));
	why[0] = '\0';
	return trace_plan(trace, text, 0, why, sizeof(why));
}

static void refuse(const char *text, const char *sentence)
{
	CHECK(plan(text) == -EINVAL);
	if (!strstr(why, sentence))
		printf("%s: %s\n", text, why);
	CHECK(strstr(why, sentence));
}

/* The events of a kernel for these patterns, with spaces between. */
static int choose(const char *patterns, char had[512])
{
	size_t used = 0;

	CHECK(plan("on") == 0);
	if (patterns)
		snprintf(trace->patterns, sizeof(trace->patterns), "%s", patterns);
	int err = trace_choose(trace, kernel_has, why, sizeof(why));

	had[0] = '\0';
	for (int i = 0; i < trace->n_events; i++)
		used += (size_t)snprintf(had + used, 512 - used, "%s ", trace->events[i]);
	return err;
}

/* How often the plan has an event of those of a kernel. */
static int has(const char *text, bool ends_with_sleep, const char *names, const char *event)
{
	int found = 0;

	CHECK(plan(text) == 0);
	trace->ends_with_sleep = ends_with_sleep;
	trace->timer = timer;
	trace->probes_faults = probes_faults;
	CHECK(trace_choose(trace, names, why, sizeof(why)) == 0);
	for (int i = 0; i < trace->n_events; i++)
		found += !strcmp(trace->events[i], event);
	return found;
}

/* The same with two marks. */
static int mark(const char *begin, const char *end, const char *traced)
{
	memset(trace, 0, sizeof(*trace));
	trace->marks[0] = begin;
	trace->marks[1] = end;
	why[0] = '\0';
	int err = trace_plan(trace, traced, 0, why, sizeof(why));

	return err ? err : trace_choose(trace, kernel_has, why, sizeof(why));
}

static void marks_are_events_of_the_kernel(void)
{
	CHECK(mark("marker:a b", "event:irq/irq_handler_exit:irq == 3", "events=sched_wakeup") == 0);
	CHECK(trace->n_events == 2 && !strcmp(trace->events[1], "irq/irq_handler_exit"));
	CHECK(!strcmp(marks_filter(trace->marks[1]), "irq == 3") && !marks_filter(trace->marks[0]));
	CHECK(marks_are_written(trace->marks));
	CHECK(mark("event:irq/irq_handler_exit", "event:irq/irq_handler_entry", "events=irq_handler_entry") == 0);
	CHECK(trace->n_events == 2 && !marks_are_written(trace->marks));
	CHECK(mark("event:sched/sched_wakeup", "event:sched/sched_switch:next_pid == 3", "on") == -EINVAL);
	CHECK(!strcmp(why, "the mark 'event:sched/sched_switch:next_pid == 3' can have no filter: its event is needed for more"));
	CHECK(mark("event:no/such", "marker:a", "on") == -EINVAL && !strcmp(why, "this kernel has no event for the mark 'event:no/such'"));
	CHECK(mark("event:irq/irq_*", "marker:a", "events=sched_switch") == -EINVAL); /* two events are no mark */
	CHECK(mark("uprobe:/a:0x1 name", "uretprobe:/a:0x1", "on") == -EINVAL); /* nobody has defined it */
}

static void marks_that_make_no_sense_are_refused(void)
{
	static const char *const wrong[] = { "marker:", "uprobe:app:0x1", "uprobe:/app", "event:sched", "sched", "", "uprobe:/a:0x1\np:b", "marker:a\tb" };

	CHECK(mark("marker:a", NULL, "on") == -EINVAL && !strcmp(why, "--begin, --end and --trace go together"));
	CHECK(mark(NULL, "marker:a", "on") == -EINVAL && mark("marker:a", "marker:b", NULL) == -EINVAL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK(mark("marker:a", wrong[i], "on") == -EINVAL && strstr(why, "--end takes marker:TEXT"));
}

static void nothing_is_planned_unless_asked(void)
{
	CHECK(plan(NULL) == 0 && !trace->asked && trace->patterns[0] == '\0' && trace_space(trace) == 0);
}

static void options_are_taken_in_any_order(void)
{
	CHECK(plan("seed=4294967295,buffer_kib=4,events=sched_switch+irq:*") == 0);
	CHECK(trace->seed == UINT32_MAX && trace->buffer_kib == 4 && trace->given);
	CHECK(!strcmp(trace->patterns, "sched_switch+irq:*"));
	CHECK(trace_space(trace) == 4.0 * KIB * trace->cpus + 1024 * KIB);
}

static void a_plan_without_options_has_presets(void)
{
	CHECK(plan("on") == 0 && !trace->given && strstr(trace->patterns, "sched_switch+"));
	CHECK(trace->cpus >= 1 && trace->buffer_kib >= 16 && trace->buffer_kib <= 1024);
}

static void nonsense_is_refused(void)
{
	static char text[TRACE_PATTERNS + 1100];

	refuse("off", "not 'off'");
	refuse("events=", "not 'events='");
	refuse("seed=1,buffer_kib=3", "not 'buffer_kib=3'");
	refuse("on,seed=1", "not 'on'");
	refuse("buffer_kib=16777217", "not 'buffer_kib=16777217'");
	refuse("seed=-1", "not 'seed=-1'");
	refuse("seed=4294967296", "not 'seed=4294967296'");
	memset(text, 'x', sizeof(text) - 1);
	refuse(text, "--trace takes 5119 characters at most");
	text[TRACE_PATTERNS + 7] = '\0';
	memcpy(text, "events=", 7);
	refuse(text, "the list of events is too long: --trace takes 4095 characters");
	text[TRACE_PATTERNS + 6] = '\0';
	CHECK(plan(text) == 0 && strlen(trace->patterns) == TRACE_PATTERNS - 1);
	text[6] = ' ';
	refuse(text, "on, explain"); /* the sentence is whole, however long what it refuses */
	CHECK(strstr(why, "not 'events xxx") && why[strlen(why) - 1] == '\'');
}

static void memory_that_is_not_there_is_refused(void)
{
	int64_t half_kib = memory_room() / KIB / 2 / sysconf(_SC_NPROCESSORS_CONF);

	if (half_kib > 8 * 1024 * 1024)
		SKIP("more memory than a buffer may have");
	CHECK(plan("buffer_kib=16777216") == -ENOMEM && strstr(why, "more than half of the memory"));
}

static void patterns_name_events(void)
{
	char had[512];

	CHECK(choose("sched_wakeup", had) == 0 && !strcmp(had, "sched/sched_wakeup "));
	CHECK(choose("sched_wakeup*", had) == 0 && !strcmp(had, "sched/sched_wakeup sched/sched_wakeup_new "));
	CHECK(choose("sched_switch", had) == 0 && !strcmp(had, "sched/sched_switch other/sched_switch "));
	CHECK(choose("other:sched_switch", had) == 0 && !strcmp(had, "other/sched_switch "));
	CHECK(choose("irq:*+irq_handler_exit", had) == 0 && !strcmp(had, "irq/irq_handler_entry irq/irq_handler_exit "));
}

static void a_pattern_without_events_is_an_error_if_it_was_given(void)
{
	char had[512];

	CHECK(choose("sched_switch+spi_*+gone", had) == 0 && !strcmp(trace->missing, " spi_* gone"));
	CHECK(choose("sched:sched", had) == -EINVAL && !strcmp(why, "this kernel has none of the events to trace"));
	CHECK(plan("events=sched_switch+nonsense") == 0 && trace_choose(trace, kernel_has, why, sizeof(why)) == -EINVAL);
	CHECK(!strcmp(why, "this kernel has no event 'nonsense' to trace"));
}

static void the_first_alternative_that_there_is_counts(void)
{
	char had[512];

	CHECK(choose("gone|sched:sched_wakeup|sched_switch", had) == 0 && !strcmp(had, "sched/sched_wakeup "));
	CHECK(choose("irq_handler_*|sched_switch+gone:*|also_gone", had) == 0);
	CHECK(!strcmp(had, "irq/irq_handler_entry irq/irq_handler_exit ") && !strcmp(trace->missing, " gone:*|also_gone"));
}

static void what_explains_is_a_preset_of_its_own(void)
{
	CHECK(plan("explain,buffer_kib=64") == 0 && !trace->given && trace->buffer_kib == 64);
	CHECK(trace_choose(trace, kernel_has, why, sizeof(why)) == 0 && trace->n_events == 5);
	CHECK(strstr(trace->missing, " irq_vectors:*") && !strstr(trace->missing, "sched_wakeup"));
	CHECK(plan("explain,events=sched_switch") == 0 && trace->given && !strcmp(trace->patterns, "sched_switch"));
}

/* Of two events that tell the same, one is traced: they are on the way of the measured thread. */
static void what_explains_has_no_event_twice(void)
{
	static const char vectors[] = "irq_vectors:local_timer_entry\0irq_vectors:local_timer_exit\0irq:irq_handler_exit\0"
				      "timer:hrtimer_expire_entry\0timer:hrtimer_expire_exit\0"
				      "syscalls:sys_exit_clock_nanosleep\0raw_syscalls:sys_exit\0";
	static const char timers[] = "timer:hrtimer_expire_entry\0timer:hrtimer_expire_exit\0";

	CHECK(has("explain", false, vectors, "syscalls/sys_exit_clock_nanosleep") == 1);
	CHECK(has("explain", false, vectors, "timer/hrtimer_expire_exit") == 1);
	timer = TIMER_OF_VECTOR;
	CHECK(has("explain", false, vectors, "timer/hrtimer_expire_entry") == 1 && has("explain", false, vectors, "timer/hrtimer_expire_exit") == 0);
	CHECK(has("explain", false, vectors, "irq_vectors/local_timer_entry") == 0 && has("explain", false, vectors, "irq_vectors/local_timer_exit") == 1);
	CHECK(has("explain,stacks", false, vectors, "irq_vectors/local_timer_entry") == 1);
	CHECK(has("explain", false, timers, "timer/hrtimer_expire_exit") == 1); /* nothing else ends it */
	timer = TIMER_OF_HANDLER;
	CHECK(has("explain", false, vectors, "irq_vectors/local_timer_entry") == 1 && has("explain", false, vectors, "timer/hrtimer_expire_exit") == 0);
	CHECK(has("explain", false, timers, "timer/hrtimer_expire_exit") == 1);
	CHECK(has("recorder", true, vectors, "syscalls/sys_exit_clock_nanosleep") == 0);
	CHECK(has("whole,calls_of=7", false, vectors, "syscalls/sys_exit_clock_nanosleep") == 0);
	CHECK(has("whole,calls_of=7", false, vectors, "raw_syscalls/sys_exit") == 1);
	CHECK(has("recorder,events=hrtimer_expire_*", true, vectors, "timer/hrtimer_expire_exit") == 1 && !trace->explains);
	CHECK(has("explain", true, timers, "timer/hrtimer_expire_exit") == 1 && trace->explains);
}

static void the_flight_recorder_has_presets_and_bounds(void)
{
	int64_t of_cpu, held;

	CHECK(plan("on") == 0 && !trace->recorder && !trace->optional);
	CHECK(plan("recorder") == 0 && trace->recorder && strstr(trace->patterns, "irq_vectors:*"));
	CHECK(trace->top == 256 && trace->ordinary == 32 && !trace->threshold_ns && !trace->optional);
	CHECK(plan("recorder,optional,threshold=200us,top=0,ordinary=512") == 0);
	CHECK(trace->optional && trace->threshold_ns == 200000 && trace->top == 0 && trace->ordinary == 512);
	CHECK(plan("events=sched_switch,recorder") == 0 && !strcmp(trace->patterns, "sched_switch"));
	trace_memory(trace, &of_cpu, &held);
	CHECK(of_cpu >= 64 * KIB && of_cpu <= 1024 * KIB && held >= 256 * KIB && held <= 8192 * KIB);
	CHECK(trace_record_room(trace) == 3584 * KIB && trace_space(trace) == (3584 + 1024) * KIB);
	trace->length_ns = 7200 * (int64_t)1000000000;
	CHECK(trace_record_room(trace) == 2 * 3584 * KIB);
	CHECK(plan("recorder,record_kib=16") == 0 && trace_record_room(trace) == 16 * KIB);
	trace->cpus = 4096;
	trace_memory(trace, &of_cpu, &held);
	CHECK(of_cpu == 64 * KIB);
	refuse("recorder,threshold=0us", "not 'threshold=0us'");
	refuse("recorder,threshold=5", "not 'threshold=5'");
	refuse("recorder,top=513", "not 'top=513'");
	refuse("recorder,record_kib=15", "not 'record_kib=15'");
	refuse("recorder,ordinary=-1", "not 'ordinary=-1'");
	refuse("recorders", "not 'recorders'");
}

static void a_whole_trace_has_a_bound_and_calls_a_filter(void)
{
	static const char calls[] = "raw_syscalls:sys_exit\0sched:sched_switch\0signal:signal_deliver\0";

	CHECK(plan("whole") == 0 && trace->whole && trace->keep_mib == 256 && strstr(trace->patterns, "irq_vectors:*"));
	CHECK(trace_space(trace) == 2.0 * 256 * KIB * KIB + 1024 * KIB);
	CHECK(plan("whole,keep_mib=1,calls_of=a b+4711,events=sched_switch") == 0 && trace->keep_mib == 1);
	CHECK(!strcmp(trace->calls_of, "comm == \"a b\" || common_pid == 4711"));
	CHECK(trace_choose(trace, calls, why, sizeof(why)) == 0 && trace->n_events == 3 && !strcmp(trace->events[1], "raw_syscalls/sys_exit"));
	CHECK(!strcmp(trace->events[2], "signal/signal_deliver") && strstr(trace->missing, "raw_syscalls:sys_enter"));
	CHECK(!trace_is_of_calls(trace->events[0]) && trace_is_of_calls(trace->events[1]) && trace_is_of_calls(trace->events[2]));
	CHECK(trace_is_of_calls("filemap/mm_filemap_add_to_page_cache"));
	CHECK(trace_is_of_calls("kmem/rss_stat") && !trace_is_of_calls("kmem") && !trace_is_of_calls("signal/signal_generate"));
	CHECK(trace_choose(trace, calls + sizeof("raw_syscalls:sys_exit"), why, sizeof(why)) == 0 && !*trace->calls_of);
	CHECK(strstr(trace->missing, "raw_syscalls:sys_exit"));
	refuse("whole,recorder", "recorder or whole, not both");
	refuse("whole,keep_mib=0", "not 'keep_mib=0'");
	CHECK(plan("whole,stacks,process=4711,buffer_kib=64") == 0 && trace->stacks && trace->process == 4711);
	CHECK(trace_space(trace) == 2.0 * 256 * KIB * KIB + 1024 * KIB + 2.0 * 64 * KIB * trace->cpus);
	refuse("process=0", "not 'process=0'");
	refuse("calls_of=", "calls_of of --trace takes a few threads");
}

/* Where the kernel takes probes, these tell the end of a page fault better than what it does close to it. */
static void probes_of_page_faults_replace_what_tells_less(void)
{
	char names[256], folder[96];
	int length = snprintf(names, sizeof(names), "rtproof_%s:fault_end%craw_syscalls:sys_exit%ckmem:rss_stat%cmmap_lock:mmap_lock_released%c",
			      tracefs_owner(), 0, 0, 0, 0);

	CHECK(length < (int)sizeof(names));
	names[length] = '\0';
	snprintf(folder, sizeof(folder), "rtproof_%s/fault_end", tracefs_owner());
	probes_faults = true;
	CHECK(has("whole,calls_of=7", false, names, folder) == 1 && trace_is_of_calls(folder));
	CHECK(has("whole,calls_of=7", false, names, "kmem/rss_stat") == 0);
	CHECK(has("whole,calls_of=7", false, names, "mmap_lock/mmap_lock_released") == 0 && !strstr(trace->missing, "mmap_lock"));
	CHECK(has("whole,events=sys_exit", false, names, folder) == 0); /* nobody asked for calls */
	probes_faults = false;
	CHECK(has("whole,calls_of=7", false, names, "kmem/rss_stat") == 1 && has("whole,calls_of=7", false, names, folder) == 0);
	CHECK(!trace_is_of_calls("rtproof_7/begin") && !trace_is_of_calls("other/fault_end"));
}

static void more_events_than_there_is_room_for_are_refused(void)
{
	static char names[(TRACE_EVENTS + 1) * 9 + 1];

	for (int i = 0; i <= TRACE_EVENTS; i++)
		snprintf(names + i * 9, 10, "a:one%03d", i);
	CHECK(plan("events=one*") == 0 && trace_choose(trace, names, why, sizeof(why)) == -E2BIG && strstr(why, "160 events at most"));
	names[TRACE_EVENTS * 9] = '\0';
	CHECK(plan("events=one*") == 0 && trace_choose(trace, names, why, sizeof(why)) == 0 && trace->n_events == TRACE_EVENTS);
}

/* On, off, off, on or the other way round: each is there, and the same again for the same seed. */
static void blocks_come_in_fours(void)
{
	struct trace_plan one = { .seed = 1 }, again = { .seed = 1 }, other = { .seed = 2 };
	int first_on = 0, differs = 0;

	for (int64_t four = 0; four < FOURS; four++) {
		bool on = trace_is_on_in(&one, 4 * four);

		first_on += on;
		differs += on != trace_is_on_in(&other, 4 * four);
		for (int i = 0; i < 4; i++) {
			CHECK(trace_is_on_in(&one, 4 * four + i) == ((i == 0 || i == 3) == on));
			CHECK(trace_is_on_in(&one, 4 * four + i) == trace_is_on_in(&again, 4 * four + i));
		}
	}
	CHECK(first_on > 0 && first_on < FOURS && differs > 0);
}

/* In the last of the turns it is still as chance has it; from then on there is nothing but on. */
static void after_the_turns_it_is_on(void)
{
	struct trace_plan some = { .seed = 1, .turns = 40 }, all = { .seed = 1 };
	int off = 0;

	for (int64_t block = 0; block < 80; block++) {
		CHECK(trace_is_on_in(&some, block) == (block >= 40 || trace_is_on_in(&all, block)));
		off += !trace_is_on_in(&some, block);
	}
	CHECK(off == 20);
}

int main(void)
{
	after_the_turns_it_is_on();
	marks_are_events_of_the_kernel();
	marks_that_make_no_sense_are_refused();
	nothing_is_planned_unless_asked();
	options_are_taken_in_any_order();
	a_plan_without_options_has_presets();
	nonsense_is_refused();
	patterns_name_events();
	a_pattern_without_events_is_an_error_if_it_was_given();
	the_first_alternative_that_there_is_counts();
	what_explains_is_a_preset_of_its_own();
	what_explains_has_no_event_twice();
	the_flight_recorder_has_presets_and_bounds();
	a_whole_trace_has_a_bound_and_calls_a_filter();
	probes_of_page_faults_replace_what_tells_less();
	more_events_than_there_is_room_for_are_refused();
	blocks_come_in_fours();
	memory_that_is_not_there_is_refused();
	return EXIT_SUCCESS;
}
