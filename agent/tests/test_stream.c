/* SPDX-License-Identifier: Apache-2.0 */
/* A record whose buffer is bounded: which chunks are dropped, what is told of them, and that the bound is kept. */
#include "system/sys.h"

#include "background/link_cost.h"
#include "measure/capture.h"
#include "record/delivery.h"

#include "check.h"
#include "decode.h"
#include "scratch.h"

#include <string.h>

enum { BUFFER = 512 * 1024, PERIOD_NS = 1000000 };

static struct record record;
static struct capture capture;
static uint64_t state = 7;

static void feed(int n)
{
	for (int i = 0; i < n; i++) {
		const struct ring_entry entry = { (int64_t)random_below(&state, 900000), 0, RING_SAMPLE };

		CHECK(capture_add(&capture, &record, &entry) == 0);
		CHECK(!record.no_space && record.end - record.delivered + record.reserve <= BUFFER);
	}
}

static void begin(void)
{
	CHECK(record_open(&record, scratch_file()) == 0);
	record.buffer = BUFFER;
	capture_open(&capture, 3, true, true, PERIOD_NS, 0);
}

static void finish(void)
{
	CHECK(capture_flush(&capture, &record, true) == 0);
	capture_end(&capture, &record);
	CHECK(record_close(&record) == 0);
	capture_close(&capture);
}

/* What the chunks of the file say of the activations. */
struct found {
	uint64_t samples, holes, in_seconds, in_summary, dropped;
	int events;
};

static void take_samples(struct found *found, struct reader *payload)
{
	static uint64_t next;
	static int64_t values[DECODE_MOST];

	if (!found->samples)
		next = 0;
	get_number(payload, 4);
	uint64_t first = get_number(payload, 8);

	get_i64(payload);
	CHECK(first >= next);
	found->holes += first - next;
	uint32_t n = get_packed(payload, values);

	found->samples += n;
	next = first + n;
}

static void take_event(struct found *found, struct reader *payload)
{
	char kind[24], text[200];
	unsigned int series;
	unsigned long long first, samples;
	long long from_ns, to_ns;

	get_i64(payload);
	get_number(payload, 2);
	get_string(payload, kind, sizeof(kind));
	get_string(payload, text, sizeof(text));
	CHECK(!strcmp(kind, "samples_dropped"));
	CHECK(sscanf(text, "series=%u first_index=%llu samples=%llu from_ns=%lld to_ns=%lld", &series, &first, &samples, &from_ns,
		     &to_ns) == 5);
	CHECK(series == 3 && from_ns == (long long)first * PERIOD_NS);
	CHECK(to_ns == (long long)(first + samples - 1) * PERIOD_NS);
	found->events++;
	found->dropped += samples;
}

static struct found read_back(void)
{
	static int64_t column[DECODE_MOST];
	struct reader reader = read_whole(scratch_path);
	const uint8_t *start = reader.at;
	struct found found = { 0 };
	struct chunk chunk;
	uint32_t sequence = 0;

	while (get_chunk(&reader, &chunk)) {
		CHECK(chunk.sequence == sequence++); /* a chunk that is dropped leaves no gap */
		if (chunk.type == CHUNK_SAMPLES)
			take_samples(&found, &chunk.payload);
		if (chunk.type == CHUNK_EVENT)
			take_event(&found, &chunk.payload);
		if (chunk.type == CHUNK_SECONDS) {
			get_number(&chunk.payload, 8);
			uint32_t n = get_packed(&chunk.payload, column);

			while (n--)
				found.in_seconds += (uint64_t)column[n];
		}
		if (chunk.type == CHUNK_SUMMARY) {
			get_number(&chunk.payload, 4);
			get_i64(&chunk.payload);
			get_i64(&chunk.payload);
			found.in_summary += get_number(&chunk.payload, 8);
		}
	}
	free((void *)(uintptr_t)start);
	return found;
}

static void without_a_host_samples_are_dropped_and_all_else_is_kept(void)
{
	begin();
	feed(400000);
	CHECK(record.behind);
	finish();
	struct found found = read_back();

	CHECK(found.events == 1 && found.dropped > 0 && found.samples > 0);
	CHECK(found.samples + found.dropped == 400000 && capture.unkept == found.dropped);
	CHECK(found.in_seconds == 400000 && found.in_summary == 400000 && found.holes == 0);
}

static void with_a_host_that_keeps_up_nothing_is_dropped(void)
{
	begin();
	for (int i = 0; i < 100; i++) {
		feed(4000);
		record.delivered = record.end;
	}
	finish();
	struct found found = read_back();

	CHECK(found.samples == 400000 && found.events == 0 && found.holes == 0);
}

static void each_time_away_is_a_stretch_of_its_own(void)
{
	begin();
	for (int i = 0; i < 3; i++) {
		feed(100000);
		CHECK(record.behind);
		record.delivered = record.end;
		feed(5000);
		CHECK(!record.behind);
	}
	finish();
	struct found found = read_back();

	CHECK(found.events == 3 && found.samples + found.dropped == 315000);
	CHECK(found.holes == found.dropped);
}

static void a_full_buffer_ends_the_run_with_room_for_its_end(void)
{
	CHECK(record_open(&record, scratch_file()) == 0);
	record.buffer = BUFFER;
	while (!record.no_space)
		CHECK(record_event(&record, 0, WHOLE_RUN, "any", "thing that cannot be done without") == 0);
	CHECK(record.overrun && record.end + record.reserve >= BUFFER - 4096 && record.end + record.reserve < BUFFER + 4096);
	record_has_room_again(&record);
	CHECK(record.no_space);
	CHECK(record_event(&record, 0, WHOLE_RUN, "last", "") == 0);
	CHECK(record_close(&record) == 0);
}

static void what_was_delivered_is_read_as_it_was_written(void)
{
	struct delivery written = { .record = 1LL << 40, .log = 7, .sent = 3, .wakeups = 2, .cpu_ns = 1, .cpus = "0-2,5" };
	struct delivery read;
	char path[600];

	scratch_file();
	CHECK(delivery_read(scratch_folder, &read) == -ENOENT);
	CHECK(delivery_write(scratch_folder, &written) == 0);
	CHECK(delivery_read(scratch_folder, &read) == 0);
	CHECK(read.record == written.record && read.log == 7 && read.sent == 3 && read.wakeups == 2 && read.cpu_ns == 1);
	CHECK(!strcmp(read.cpus, "0-2,5") && !strcmp(read.device, "-"));
	snprintf(path, sizeof(path), "%s/delivery", scratch_folder);
	FILE *file = fopen(path, "w");

	CHECK(file && fputs("5 -3 0 0 0 - -\n", file) >= 0 && fclose(file) == 0);
	CHECK(delivery_read(scratch_folder, &read) == -EINVAL);
	CHECK(unlink(path) == 0);
	CHECK(delivery_write("/nowhere/at/all", &written) == -ENOENT);
}

static void what_the_link_costs_only_grows(void)
{
	struct delivery before = { .sent = 100, .wakeups = 10, .cpu_ns = 1000, .cpus = "3", .device = "eth9" }, now;
	struct link_cost cost;

	link_cost_open(&cost, &before);
	link_cost_look(&cost);
	link_cost_tell(&cost, 50, &now);
	CHECK(now.sent == 150 && now.wakeups >= 10 && now.cpu_ns >= 1000);
	CHECK(strchr(now.cpus, '3') && *now.device);
}

int main(void)
{
	without_a_host_samples_are_dropped_and_all_else_is_kept();
	with_a_host_that_keeps_up_nothing_is_dropped();
	each_time_away_is_a_stretch_of_its_own();
	a_full_buffer_ends_the_run_with_room_for_its_end();
	what_was_delivered_is_read_as_it_was_written();
	what_the_link_costs_only_grows();
	return EXIT_SUCCESS;
}
