/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "measure/capture.h"

#include "record/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void capture_open(struct capture *capture, uint16_t series, bool by_period, bool keep_samples, int64_t period_ns,
		  int64_t first_due_ns)
{
	memset(capture, 0, sizeof(*capture));
	capture->series = series;
	capture->by_period = by_period;
	capture->keep_samples = keep_samples;
	capture->period_ns = period_ns;
	capture->due_ns = first_due_ns;
	capture->first_due_ns = first_due_ns;
}

void capture_close(struct capture *capture)
{
	hist_free(&capture->observed.hist);
	hist_free(&capture->charged.hist);
	if (capture->above)
		above_close(capture->above);
	free(capture->above);
}

/* A stretch has ended: the next samples are kept, or there are no more. */
static void tell_dropped(struct capture *capture, struct record *record)
{
	char text[160];

	if (!capture->dropped)
		return;
	snprintf(text, sizeof(text), "series=%u first_index=%llu samples=%llu from_ns=%lld to_ns=%lld", (unsigned int)capture->series,
		 (unsigned long long)capture->dropped_index, (unsigned long long)capture->dropped,
		 (long long)capture->dropped_from_ns, (long long)capture->dropped_to_ns);
	capture->dropped = 0;
	record_event(record, capture->dropped_to_ns, WHOLE_RUN, "samples_dropped", text);
}

static void drop_samples(struct capture *capture)
{
	if (!capture->dropped) {
		capture->dropped_index = capture->block_index;
		capture->dropped_from_ns = capture->block_due_ns;
	}
	capture->dropped += capture->n;
	capture->unkept += capture->n;
	capture->dropped_to_ns = capture->last_due_ns;
	capture->n = 0;
	capture->gaps = 0;
}

static int write_samples(struct capture *capture, struct record *record)
{
	if (!capture->n)
		return 0;

	struct bytes *chunk = chunk_begin(record, CHUNK_SAMPLES);

	put_u16(chunk, capture->series);
	put_u16(chunk, 0);
	put_number(chunk, capture->block_index, 8);
	put_i64(chunk, capture->block_due_ns);
	put_packed(chunk, capture->values, capture->n);
	put_packed(chunk, capture->gap_position, capture->gaps);
	put_packed(chunk, capture->gap_missed, capture->gaps);
	if (chunk_is_dropped(record)) {
		drop_samples(capture);
		return record->error;
	}
	capture->n = 0;
	capture->gaps = 0;
	int err = chunk_end(record);

	tell_dropped(capture, record);
	return err;
}

static void put_seconds_column(struct bytes *chunk, const struct capture *capture, size_t offset)
{
	int64_t column[CAPTURE_SECONDS];

	for (uint32_t i = 0; i < capture->n_seconds; i++)
		memcpy(&column[i], (const char *)&capture->seconds[i] + offset, sizeof(column[i]));
	put_packed(chunk, column, capture->n_seconds);
}

static int write_seconds(struct capture *capture, struct record *record)
{
	if (!capture->n_seconds)
		return 0;

	struct bytes *chunk = chunk_begin(record, CHUNK_SECONDS);

	put_u16(chunk, capture->series);
	put_u16(chunk, 0);
	put_u32(chunk, (uint32_t)capture->first_second);
	put_seconds_column(chunk, capture, offsetof(struct second, obtained));
	put_seconds_column(chunk, capture, offsetof(struct second, missed));
	put_seconds_column(chunk, capture, offsetof(struct second, max));
	capture->n_seconds = 0;
	return chunk_end(record);
}

/* The entry of a second; seconds without anything in between are written as such. Due times never go back. */
static struct second *second_of(struct capture *capture, struct record *record, int64_t due_ns)
{
	int64_t second = due_ns / NS_PER_SECOND;

	if (capture->n_seconds && second - capture->first_second >= CAPTURE_SECONDS)
		write_seconds(capture, record);
	if (!capture->n_seconds)
		capture->first_second = second;
	if (second < capture->first_second) /* a relative sleep that woke early, just after a checkpoint */
		second = capture->first_second;
	while (capture->first_second + capture->n_seconds <= second)
		capture->seconds[capture->n_seconds++] = (struct second){ 0, 0, 0 };
	return &capture->seconds[second - capture->first_second];
}

static int write_top(struct capture *capture, struct record *record)
{
	if (!top_is_fresh(&capture->top))
		return 0;

	struct bytes *chunk = chunk_begin(record, CHUNK_TOP);

	put_u16(chunk, capture->series);
	put_u16(chunk, TOP_K);
	put_top(chunk, &capture->top);
	return chunk_end(record);
}

static int write_view(struct capture *capture, struct record *record, uint8_t view, struct summary *summary)
{
	if (!summary->count && !summary->lost)
		return 0;

	struct bytes *chunk = chunk_begin(record, CHUNK_SUMMARY);

	put_u16(chunk, capture->series);
	put_u8(chunk, view);
	put_u8(chunk, 0);
	put_summary(chunk, summary);
	summary_clear(summary);
	return chunk_end(record);
}

static void end_slice(struct capture *capture, struct record *record)
{
	write_view(capture, record, 0, &capture->observed);
	capture->has_before = false; /* pairs are counted within a slice */
	capture->has_cycle_before = false;
	write_view(capture, record, 1, &capture->charged);
}

int capture_flush(struct capture *capture, struct record *record, bool slice_ends)
{
	write_samples(capture, record);
	write_seconds(capture, record);
	write_top(capture, record);
	if (capture->above)
		above_flush(capture->above, record);
	if (slice_ends)
		end_slice(capture, record);
	return record->error;
}

static int64_t second_number(const struct capture *capture, const struct second *second)
{
	return capture->first_second + (second - capture->seconds);
}

/* Neighbours: lag-1 products, and a long cycle with a short one behind it. */
static void add_pair(struct capture *capture, int64_t value)
{
	int64_t wake_ns = capture->due_ns + value;

	if (capture->has_before) {
		int64_t cycle_ns = wake_ns - capture->wake_before_ns;

		summary_add_pair(&capture->observed, capture->value_before, value);
		if (capture->has_cycle_before && 5 * capture->cycle_before_ns > 6 * capture->period_ns &&
		    5 * cycle_ns < 4 * capture->period_ns)
			capture->observed.catch_up_pairs++;
		capture->cycle_before_ns = cycle_ns;
		capture->has_cycle_before = true;
	}
	capture->has_before = true;
	capture->wake_before_ns = wake_ns;
	capture->value_before = value;
}

static void add_to_block(struct capture *capture, int64_t value, uint32_t missed)
{
	if (!capture->n) {
		capture->block_index = capture->index;
		capture->block_due_ns = capture->due_ns;
	}
	if (missed) {
		capture->gap_position[capture->gaps] = capture->n;
		capture->gap_missed[capture->gaps++] = missed;
	}
	capture->values[capture->n++] = value;
	capture->last_due_ns = capture->due_ns;
}

static void add_to_totals(struct capture *capture, int64_t value, uint32_t missed)
{
	if (!capture->obtained || value < capture->min)
		capture->min = value;
	if (!capture->obtained || value > capture->max)
		capture->max = value;
	if (!capture->recent++ || value > capture->recent_max)
		capture->recent_max = value;
	capture->last = value;
	capture->sum += (double)value;
	capture->obtained++;
	capture->missed += missed;
}

/* A loop that skips no due time can fall behind for hours, and the sum of a slice has 64 bits. */
static bool outgrows(int64_t sum, int64_t value)
{
	int64_t ignored;

	return __builtin_add_overflow(sum, value, &ignored);
}

/*
 * Each missed activation is charged with the time from its own due time until the thread ran again. In an hour without the
 * thread their sum outgrows 64 bits, so a slice ends before it does.
 */
static void charge(struct capture *capture, struct record *record, int64_t value, uint32_t missed)
{
	for (uint32_t j = 1; j <= missed; j++) {
		int64_t due_ns = capture->due_ns + (int64_t)j * capture->period_ns;

		if (capture->charged.sum > INT64_MAX / 2)
			write_view(capture, record, 1, &capture->charged);
		summary_add(&capture->charged, due_ns, value - (int64_t)j * capture->period_ns);
		struct second *second = second_of(capture, record, due_ns);

		second->missed++;
		if (capture->above)
			above_missed(capture->above, record, second_number(capture, second), value - (int64_t)j * capture->period_ns);
	}
}

/* A hole: due times whose fate is unknown because the ring was full. What follows has no neighbour. */
static int add_lost(struct capture *capture, struct record *record, int64_t lost)
{
	int err = write_samples(capture, record);

	capture->observed.lost += (uint64_t)lost;
	capture->lost += (uint64_t)lost;
	capture->index += (uint64_t)lost;
	capture->due_ns += lost * capture->period_ns;
	capture->has_before = false;
	capture->has_cycle_before = false;
	return err;
}

void capture_end(struct capture *capture, struct record *record)
{
	tell_dropped(capture, record);
}

int capture_add(struct capture *capture, struct record *record, const struct ring_entry *entry)
{
	if (entry->kind == RING_LOST)
		return add_lost(capture, record, entry->value);
	if (entry->kind == RING_DUE) { /* nothing before leads to it, so a block begins with it */
		capture->due_ns = entry->value;
		return write_samples(capture, record);
	}

	int64_t value = entry->value;
	struct second *second = second_of(capture, record, capture->due_ns);

	if (!capture->obtained)
		capture->first_due_ns = capture->due_ns;
	if (capture->above)
		above_ran(capture->above, record, capture->index, capture->due_ns, second_number(capture, second), value);
	if (!second->obtained || value > second->max)
		second->max = value;
	second->obtained++;
	if (outgrows(capture->observed.sum, value))
		end_slice(capture, record);
	if (summary_add(&capture->observed, capture->due_ns, value))
		record->error = record->error ? record->error : -ENOMEM;
	top_add(&capture->top, capture->index, capture->due_ns, value);
	add_pair(capture, value);
	if (capture->keep_samples)
		add_to_block(capture, value, entry->missed);
	add_to_totals(capture, value, entry->missed);
	charge(capture, record, value, entry->missed);
	capture->index += 1 + (uint64_t)entry->missed;
	capture->due_ns += capture->period_ns + (capture->by_period ? (int64_t)entry->missed * capture->period_ns : value);
	if (capture->n == CAPTURE_BLOCK || capture->gaps == CAPTURE_GAPS)
		return write_samples(capture, record);
	return record->error;
}
