/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/recorder.h"

#include "record/bytes.h"
#include "measure/workers.h"
#include "system/clock.h"
#include "system/text.h"
#include "trace/tracefs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
	TURN_NS = 50000000,      /* between looks at the buffers */
	CATCH_UP_NS = 2000000,   /* if more was there than is read at once */
	TURN_PAGES = 64,         /* of each CPU */
	PRIORITY = 1,            /* below every measuring thread */
	NICE = -10,              /* without that: as the writer */
	ALL_CPUS_MOST = 4,       /* with more CPUs, a window has the pages of its own CPU only */
	PAGE_MOST = 64 * 1024,
	PACKED = 6,              /* a batch becomes about this part of its events .. */
	SNAPSHOT_ABOUT = 120,    /* .. and so many bytes for each window */
	LOOKS = 5,               /* at the clocks */
};

/* Of the room in the record: for windows above the threshold; and of that, what is there when the run begins. */
#define RENEW_NS (10 * NS_PER_SECOND)
#define BATCH_NS (10 * NS_PER_SECOND)
#define LATE_SHARE 0.875
#define FIRST_SHARE 0.25

/* The time of the trace's clock now, as far as its file tells; -1: it does not. */
static int64_t trace_now_ns(const char *place)
{
	char text[TRACEFS_TEXT];
	long long seconds, microseconds;

	if (tracefs_read(place, "per_cpu/cpu0/stats", text))
		return -1;
	const char *now = strstr(text, "now ts:");

	if (!now || sscanf(now, "now ts: %lld.%lld", &seconds, &microseconds) != 2)
		return -1;
	return seconds * NS_PER_SECOND + microseconds * 1000;
}

/* The trace may have a clock of its own: then how far it is from ours, by the closest of several looks. */
static int find_offset(struct recorder *recorder, const char *place)
{
	char text[TRACEFS_TEXT];
	int64_t least_ns = INT64_MAX;

	if (!tracefs_read(place, "trace_clock", text) && strstr(text, "[mono]"))
		return 0;
	for (int look = 0; look < LOOKS; look++) {
		int64_t before_ns = clock_now_ns(), now_ns = trace_now_ns(place), took_ns = clock_now_ns() - before_ns;

		if (now_ns < 0)
			return -ENOTSUP;
		if (took_ns >= least_ns)
			continue;
		least_ns = took_ns;
		recorder->offset_ns = now_ns - (before_ns + took_ns / 2);
	}
	return 0;
}

static int open_buffers(struct recorder *recorder, const char *place)
{
	int found = 0;

	recorder->fds = malloc((size_t)recorder->plan->cpus * sizeof(*recorder->fds));
	if (!recorder->fds)
		return -ENOMEM;
	for (int cpu = 0; cpu < recorder->plan->cpus; cpu++) {
		char path[TRACEFS_PATH + 64];

		snprintf(path, sizeof(path), "%s/per_cpu/cpu%d/trace_pipe_raw", place, cpu);
		recorder->fds[cpu] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		found += recorder->fds[cpu] >= 0;
	}
	return found ? 0 : -ENOENT;
}

static int plan_windows(struct recorder *recorder, const struct page_layout *layout)
{
	const struct trace_plan *plan = recorder->plan;
	struct windows_plan windows = { .cpus = plan->cpus, .top = (int)plan->top, .own_cpu_only = plan->cpus > ALL_CPUS_MOST };
	int64_t of_cpu, held;

	trace_memory(plan, &of_cpu, &held);
	recorder->columns = calloc(1, sizeof(*recorder->columns));
	if (!recorder->columns)
		return -ENOMEM;
	windows.lane_pages = (int)(of_cpu / layout->size) + 1;
	windows.held_pages = (int)(held / layout->size) + 1;
	/* The ordinary ones leave room for the late ones. */
	int most = windows.held_pages / 8;

	windows.ordinary = plan->ordinary < most ? (int)plan->ordinary : most;
	return windows_open(&recorder->windows, &windows, layout, (uint64_t)plan->seed);
}

static int plan_spool(struct recorder *recorder, const struct page_layout *layout)
{
	recorder->windows.layout = *layout;
	recorder->page = malloc((size_t)layout->size);
	if (!recorder->page)
		return -ENOMEM;
	return spool_open(&recorder->spool, recorder->run->config->output, recorder->plan->cpus, recorder->plan->keep_mib << 20);
}

static void choose_threshold(struct recorder *recorder)
{
	const struct config *config = recorder->run->config;

	recorder->threshold_ns = recorder->plan->threshold_ns;
	for (int i = 0; !recorder->plan->threshold_ns && i < config->n_limits; i++)
		if (!recorder->threshold_ns || config->limits_ns[i] < recorder->threshold_ns)
			recorder->threshold_ns = config->limits_ns[i];
}

int recorder_open(struct recorder *recorder, struct run *run, const char *root, const char *place, char *why, size_t room)
{
	struct page_layout layout;
	char text[TRACEFS_TEXT];
	const char *what = "know how the kernel lays out its pages";

	if (!recorder->plan->recorder && !recorder->plan->whole)
		return 0;
	recorder->run = run;
	choose_threshold(recorder);
	pthread_mutex_init(&recorder->mutex, NULL);
	int err = tracefs_read(root, "events/header_page", text);

	err = err ? err : page_layout_parse(text, &layout);
	err = !err && layout.size > PAGE_MOST ? -E2BIG : err;
	if (!err && recorder->plan->recorder) {
		what = "compare the clock of the trace with the one that measures";
		err = find_offset(recorder, place);
	}
	if (!err) {
		what = "open the buffers";
		err = open_buffers(recorder, place);
	}
	if (!err) {
		what = recorder->plan->whole ? "make files for the events beside the record" : "get its memory";
		err = recorder->plan->whole ? plan_spool(recorder, &layout) : plan_windows(recorder, &layout);
	}
	recorder->windows.began_ns = INT64_MAX;
	recorder->open = !err && recorder->plan->recorder;
	return err ? text_refuse(why, room, err, "the flight recorder can't %s: %s", what, strerror(-err)) : 0;
}

/* True if more may be there. */
static bool read_cpu(struct recorder *recorder, int cpu, int most)
{
	struct windows *windows = &recorder->windows;
	const size_t size = (size_t)windows->layout.size;
	int64_t now_ns = clock_now_ns(), begins_ns = now_ns;
	ssize_t n = 1;
	int pages = 0;

	while (pages < most) {
		uint8_t *room = windows_room(windows); /* the recorder's own until it is added */

		now_ns = clock_now_ns();
		n = read(recorder->fds[cpu], room, size);
		if (n != (ssize_t)size)
			break;
		begins_ns = (int64_t)page_head(&windows->layout, room).stamp - recorder->offset_ns;
		pthread_mutex_lock(&recorder->mutex);
		windows_add(windows, cpu, begins_ns);
		pthread_mutex_unlock(&recorder->mutex);
		pages++;
	}
	pthread_mutex_lock(&recorder->mutex);
	windows_read_to(windows, cpu, pages < most ? now_ns : begins_ns);
	pthread_mutex_unlock(&recorder->mutex);
	return pages == most;
}

/* The same where all pages are kept. Once there is no room for them, the run has no more to tell. */
static bool keep_cpu(struct recorder *recorder, int cpu, int most)
{
	const size_t size = (size_t)recorder->windows.layout.size;
	int pages = 0;

	for (; pages < most && read(recorder->fds[cpu], recorder->page, size) == (ssize_t)size; pages++)
		if (!spool_add(&recorder->spool, cpu, recorder->page, size) && recorder->spool.dropped == 1)
			run_ask_to_stop(recorder->run, END_NO_SPACE,
					recorder->spool.full ? "no space is left for the trace" :
							       "the trace has all the room that it may have (keep_mib of --trace)");
	return pages == most;
}

static bool read_all(struct recorder *recorder, int most)
{
	bool more = false;

	for (int cpu = 0; cpu < recorder->plan->cpus; cpu++)
		if (recorder->fds[cpu] >= 0)
			more |= recorder->page ? keep_cpu(recorder, cpu, most) : read_cpu(recorder, cpu, most);
	return more;
}

/* Loads must not keep it from the buffers, and it must not keep a measuring thread from its CPU. */
static void choose_policy(const struct config *config)
{
	bool below = config->policy == POLICY_DEADLINE || (config->policy != POLICY_OTHER && config->priority > PRIORITY);

	if (!below || sys_set_policy(0, POLICY_FIFO, PRIORITY))
		(void)setpriority(PRIO_PROCESS, (id_t)sys_gettid(), NICE);
}

void recorder_place(const struct run *run)
{
	workers_leave(run);
	choose_policy(run->config);
}

static void describe(struct recorder *recorder)
{
	struct cpus cpus;
	char text[100];

	cpus_get_affinity(0, &cpus);
	cpus_format(&cpus, text, sizeof(text));
	snprintf(recorder->about, sizeof(recorder->about), "%s %d, nice %d, CPUs %s", policy_name(sys_get_policy(0)),
		 sys_get_priority(0), getpriority(PRIO_PROCESS, (id_t)sys_gettid()), text);
}

static void *recorder_main(void *argument)
{
	struct recorder *recorder = argument;
	struct timespec used;

	recorder_place(recorder->run);
	describe(recorder);
	while (!word_load(&recorder->stop)) {
		bool more = read_all(recorder, TURN_PAGES);

		sys_sleep(CLOCK_MONOTONIC, 0, more ? CATCH_UP_NS : TURN_NS);
	}
	/* Nothing comes any more: what is left fits into the buffers. */
	read_all(recorder, (int)(2 * recorder->plan->buffer_kib * 1024 / recorder->windows.layout.size) + TURN_PAGES);
	if (!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used))
		recorder->cpu_time_ns = (int64_t)used.tv_sec * NS_PER_SECOND + used.tv_nsec;
	return NULL;
}

int recorder_start(struct recorder *recorder)
{
	if (!recorder->open && !recorder->page)
		return 0;
	int err = thread_start(&recorder->thread, recorder_main, recorder);

	recorder->runs = !err;
	return err;
}

void recorder_stop(struct recorder *recorder)
{
	if (!recorder->runs)
		return;
	recorder->runs = false;
	thread_end(recorder->thread, &recorder->stop);
	for (int cpu = 0; recorder->open && cpu < recorder->plan->cpus; cpu++)
		windows_read_to(&recorder->windows, cpu, INT64_MAX);
}

void recorder_begin(struct recorder *recorder, int64_t now_ns)
{
	if (!recorder->open)
		return;
	pthread_mutex_lock(&recorder->mutex);
	recorder->windows.began_ns = now_ns;
	pthread_mutex_unlock(&recorder->mutex);
}

/* What the first minute taught is the first level behind the limits. */
static int64_t threshold_of(const struct recorder *recorder, const struct capture *capture)
{
	const struct above *above = capture->above;

	if (recorder->threshold_ns)
		return recorder->threshold_ns;
	return above && above->n_levels > above->n_limits ? above->levels[above->n_limits] : INT64_MAX;
}

static bool is_traced(const struct trace_plan *plan, int64_t due_ns)
{
	return due_ns >= 0 && (!plan->blocks_ns || trace_is_on_in(plan, due_ns / plan->blocks_ns));
}

void recorder_see(struct recorder *recorder, int thread, const struct capture *capture, int64_t value)
{
	if (!recorder->open || !is_traced(recorder->plan, capture->due_ns))
		return;
	const struct run *run = recorder->run;
	int64_t due_ns = run->origin_ns + capture->due_ns, before_ns = 2 * capture->period_ns;
	const struct wanted wanted = {
		.series = capture->series, .cpu = run->workers[thread].cpu, .index = capture->index, .due_ns = capture->due_ns, .value = value,
		.from_ns = due_ns - (before_ns < WINDOW_BEFORE_NS ? before_ns : WINDOW_BEFORE_NS),
		.to_ns = due_ns + value + WINDOW_AFTER_NS, .others_from_ns = due_ns - WINDOW_OTHERS_BEFORE_NS,
	};

	pthread_mutex_lock(&recorder->mutex);
	windows_offer(&recorder->windows, &wanted, threshold_of(recorder, capture));
	pthread_mutex_unlock(&recorder->mutex);
}

/* From the last event before a window to the first one behind it. The trace may have a clock that drifts: then the whole page. */
static void cut_page(const struct recorder *recorder, const struct window *window, uint32_t slot, struct page_cut *cut)
{
	const struct windows *windows = &recorder->windows;
	const struct wanted *of = &window->of;
	int64_t from_ns = wanted_from_ns(of, windows->slots[slot].cpu);
	bool ours = !recorder->offset_ns;

	page_cut(&windows->layout, windows_page(windows, slot), ours ? (uint64_t)from_ns : 0, ours ? (uint64_t)of->to_ns : UINT64_MAX, cut);
}

/* What was collected, as a part of the file. */
static void put_part(struct recorder *recorder)
{
	if (!recorder->columns->n_pieces)
		return;
	recorder->part.length = recorder->packed.length = 0;
	put_columns(&recorder->part, recorder->columns);
	put_deflated(&recorder->packed, recorder->part.data, recorder->part.length, &recorder->table);
	record_content(&recorder->run->record, run_time_ns(recorder->run), MOMENT_DURING, "trace/columns.deflate",
		       recorder->part.failed || recorder->packed.failed ? -ENOMEM : 0, (const char *)recorder->packed.data,
		       recorder->packed.length);
}

static void put_piece(struct recorder *recorder, const struct slot *slot, const uint8_t *page, const struct page_cut *of)
{
	const struct piece piece = {
		.stamp = of->from.stamp, .cpu = slot->cpu, .lost = slot->lost && !of->from.at,
		.data = page + recorder->windows.layout.data + of->from.at, .length = of->to.at - of->from.at,
	};

	symbols_see(recorder->symbols, piece.data, piece.length);
	if (columns_add(recorder->columns, &piece))
		return;
	put_part(recorder);
	columns_add(recorder->columns, &piece);
}

/* What of them no window before had. */
static void put_pieces(struct recorder *recorder, const struct window *window, const struct window_lane *lane)
{
	struct windows *windows = &recorder->windows;
	uint32_t number = lane->first;

	for (int i = 0; i < lane->pages; i++) {
		struct page_cut cut, whole, added[2];

		if (i)
			number = windows->slots[number].next;
		const uint8_t *page = windows_page(windows, number);

		cut_page(recorder, window, number, &cut);
		page_cut(&windows->layout, page, 0, UINT64_MAX, &whole);
		int n = pieces_add(&windows->slots[number].pieces, &cut, &whole, added);

		for (int piece = 0; piece < n; piece++)
			put_piece(recorder, &windows->slots[number], page, &added[piece]);
	}
}

/* Says by which stamps the pieces of a window are named, or how many there are. */
static uint16_t put_stamps(const struct recorder *recorder, const struct window *window, const struct window_lane *lane, struct bytes *chunk)
{
	const struct windows *windows = &recorder->windows;
	uint32_t number = lane->first;
	uint16_t n = 0;

	for (int i = 0; i < lane->pages; i++) {
		struct page_cut cut;

		if (i) /* the recorder may be about to set what follows the last one */
			number = windows->slots[number].next;
		const struct page_pieces *pieces = &windows->slots[number].pieces;

		cut_page(recorder, window, number, &cut);
		for (int piece = pieces_first(pieces, &cut); piece < pieces_behind(pieces, &cut); piece++, n++)
			if (chunk)
				put_number(chunk, pieces->begins[piece].stamp, 8);
	}
	return n;
}

static void put_lane(const struct recorder *recorder, const struct window *window, int cpu, struct bytes *chunk)
{
	const struct window_lane *lane = &window->lanes[cpu];

	put_u16(chunk, (uint16_t)cpu);
	put_u8(chunk, lane->whole);
	put_u8(chunk, 0);
	put_u16(chunk, put_stamps(recorder, window, lane, NULL));
	put_stamps(recorder, window, lane, chunk);
}

static void put_snapshot(struct recorder *recorder, const struct window *window)
{
	const struct wanted *of = &window->of;
	int64_t origin_ns = recorder->run->origin_ns;
	struct bytes *chunk = chunk_begin(&recorder->run->record, CHUNK_SNAPSHOT);
	int lanes = 0;

	for (int cpu = 0; cpu < recorder->plan->cpus; cpu++)
		lanes += window->lanes[cpu].asked;
	put_u16(chunk, of->series);
	put_u8(chunk, (uint8_t)of->reason);
	put_u8(chunk, 0);
	put_number(chunk, of->index, 8);
	put_i64(chunk, of->due_ns);
	put_i64(chunk, of->value);
	put_i64(chunk, of->from_ns - origin_ns);
	put_i64(chunk, of->to_ns - origin_ns);
	put_u16(chunk, (uint16_t)lanes);
	for (int cpu = 0; cpu < recorder->plan->cpus; cpu++)
		if (window->lanes[cpu].asked)
			put_lane(recorder, window, cpu, chunk);
	chunk_end(&recorder->run->record);
}

/* The windows of the batch are in the record from here on, and their memory is free. */
static void write_batch(struct recorder *recorder)
{
	struct record *record = &recorder->run->record;
	int64_t before = record->end;

	put_part(recorder);
	for (int i = 0; i < recorder->batched; i++) {
		put_snapshot(recorder, recorder->batch[i]);
		recorder->kept[recorder->batch[i]->of.reason]++;
	}
	recorder->written += record->end - before;
	pthread_mutex_lock(&recorder->mutex);
	for (int i = 0; i < recorder->batched; i++)
		windows_written(&recorder->windows, recorder->batch[i]);
	pthread_mutex_unlock(&recorder->mutex);
	recorder->batched = 0;
}

/* Pages that a window has stay as they are until it is given up, so nobody is kept from the others meanwhile. */
static void add_to_batch(struct recorder *recorder, struct window *window)
{
	int64_t before = recorder->run->record.end, now_ns = clock_now_ns();

	if (now_ns - recorder->renewed_ns > RENEW_NS) { /* modules may have come */
		symbols_renew(recorder->symbols, "/proc/modules");
		recorder->renewed_ns = now_ns;
	}
	if (!recorder->batched)
		recorder->batch_since_ns = now_ns;
	recorder->batch[recorder->batched++] = window;
	for (int cpu = 0; cpu < recorder->plan->cpus; cpu++)
		put_pieces(recorder, window, &window->lanes[cpu]);
	recorder->written += recorder->run->record.end - before;
}

/* The more there are in a batch, the better they pack. The longest window must find room beside it, and a power cut not cost much. */
static bool is_batch_full(const struct recorder *recorder)
{
	return recorder->batched == RECORDER_BATCH || !windows_fits_one_more(&recorder->windows) ||
	       clock_now_ns() - recorder->batch_since_ns > BATCH_NS;
}

/* About what those that wait in the batch will take. */
static int64_t batch_bytes(const struct recorder *recorder)
{
	return (int64_t)recorder->columns->length / PACKED + (int64_t)recorder->batched * SNAPSHOT_ABOUT;
}

/* The largest ones, as long as there is room: so many bytes of all windows together, which the last batch may exceed. */
static void write_windows(struct recorder *recorder, enum window_reason reason, int64_t most)
{
	const struct record *record = &recorder->run->record;

	while (recorder->written + batch_bytes(recorder) < most && !record->error && !record->no_space) {
		struct window *window = windows_largest(&recorder->windows, reason);

		if (!window)
			break;
		windows_take(window);
		add_to_batch(recorder, window);
		if (is_batch_full(recorder))
			write_batch(recorder);
	}
	if (recorder->batched && is_batch_full(recorder))
		write_batch(recorder);
}

/* A part of the room is there at once; the rest comes with the time, so that there is some for what happens late in the run. */
static int64_t room_now(const struct recorder *recorder)
{
	double share = (double)run_time_ns(recorder->run) / (double)recorder->plan->length_ns;

	share = FIRST_SHARE + (1 - FIRST_SHARE) * (share < 0 ? 0 : share > 1 ? 1 : share);
	return (int64_t)(share * LATE_SHARE * (double)trace_record_room(recorder->plan));
}

/* At the end nothing waits. A batch that took less than was thought leaves room for more. */
static void write_all(struct recorder *recorder, enum window_reason reason, int64_t most)
{
	uint64_t before;

	do {
		before = recorder->kept[reason];
		write_windows(recorder, reason, most);
		write_batch(recorder);
	} while (recorder->kept[reason] > before);
}

void recorder_claim(struct recorder *recorder)
{
	if (!recorder->open)
		return;
	pthread_mutex_lock(&recorder->mutex);
	windows_claim(&recorder->windows, false);
	pthread_mutex_unlock(&recorder->mutex);
	write_windows(recorder, WINDOW_THRESHOLD, room_now(recorder));
}

void recorder_tell(const struct recorder *recorder, char *text, size_t room)
{
	text[0] = '\0';
	if (recorder->open)
		snprintf(text, room, "recorder top=%d,ordinary=%d,threshold_ns=%lld\n", recorder->windows.plan.top,
			 recorder->windows.plan.ordinary, (long long)recorder->threshold_ns);
}

static void tell_end(const struct recorder *recorder, char *text, size_t room)
{
	const struct windows *windows = &recorder->windows;

	snprintf(text, room,
		 "pages_read %llu\nwindows_threshold %llu\nwindows_kept %llu\nlost_before %llu\nlost_queue %llu\nlost_memory %llu\n"
		 "lost_record %llu\nrecord_room %lld\nrecord_used %lld\ncpu_time_ns %lld\nclock_offset_ns %lld\n",
		 (unsigned long long)windows->pages_read, (unsigned long long)windows->above,
		 (unsigned long long)recorder->kept[WINDOW_THRESHOLD], (unsigned long long)windows->lost[LOST_BEFORE],
		 (unsigned long long)windows->lost[LOST_QUEUE], (unsigned long long)windows->lost[LOST_MEMORY],
		 (unsigned long long)windows->lost[LOST_RECORD], (long long)trace_record_room(recorder->plan),
		 (long long)recorder->written, (long long)recorder->cpu_time_ns, (long long)recorder->offset_ns);
}

static void keep_whole(struct recorder *recorder, char *text, size_t room)
{
	struct record *record = &recorder->run->record;

	if (record->no_space || recorder->spool.full)
		record_has_room_again(record); /* each page gives its room back before it is written */
	for (int cpu = 0; cpu < recorder->spool.cpus; cpu++)
		spool_keep(&recorder->spool, recorder->run, cpu, recorder->symbols);
	run_fact(recorder->run, WHOLE_RUN, MOMENT_END, "recorder", "%s", recorder->about);
	snprintf(text, room, "whole pages=%llu,dropped=%llu\ncpu_time_ns %lld\n", (unsigned long long)recorder->spool.kept,
		 (unsigned long long)recorder->spool.dropped, (long long)recorder->cpu_time_ns);
}

void recorder_keep(struct recorder *recorder, char *text, size_t room)
{
	struct windows *windows = &recorder->windows;
	int64_t most = trace_record_room(recorder->plan);

	text[0] = '\0';
	if (recorder->page)
		keep_whole(recorder, text, room);
	if (!recorder->open)
		return;
	windows_claim(windows, true);
	write_all(recorder, WINDOW_THRESHOLD, (int64_t)(LATE_SHARE * (double)most));
	write_all(recorder, WINDOW_ORDINARY, most);
	write_all(recorder, WINDOW_TOP, most);
	windows->lost[LOST_RECORD] = windows_count(windows, WINDOW_THRESHOLD);
	run_fact(recorder->run, WHOLE_RUN, MOMENT_END, "recorder", "%s", recorder->about);
	tell_end(recorder, text, room);
}

void recorder_close(struct recorder *recorder)
{
	for (int cpu = 0; recorder->fds && cpu < recorder->plan->cpus; cpu++)
		if (recorder->fds[cpu] >= 0)
			close(recorder->fds[cpu]);
	free(recorder->fds);
	free(recorder->columns);
	recorder->columns = NULL;
	bytes_free(&recorder->part);
	bytes_free(&recorder->packed);
	recorder->fds = NULL;
	windows_close(&recorder->windows);
	spool_close(&recorder->spool);
	free(recorder->page);
	recorder->page = NULL;
	recorder->open = false;
}
