/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "measure/above_levels.h"

#include <stdio.h>
#include <string.h>

enum { SECONDS_BYTES = 8192, LEVEL_STEP = 16, LEAST_ABOVE = 5, MILLION = 1000000 };
enum { KIND_LIMIT, KIND_LEARNED };

#define LEARN_NS (60 * NS_PER_SECOND)

static void add_level(struct above *above, int64_t value)
{
	above->levels[above->n_levels++] = value;
	if (value < above->lowest)
		above->lowest = value;
}

void above_open(struct above *above, uint16_t series, const int64_t *limits_ns, int n_limits, int64_t first_due_ns)
{
	memset(above, 0, sizeof(*above));
	above->series = series;
	above->n_limits = n_limits;
	above->lowest = INT64_MAX;
	for (int i = 0; i < n_limits; i++)
		add_level(above, limits_ns[i]);
	above->learning = true;
	above->learned_at_ns = first_due_ns + LEARN_NS;
}

void above_close(struct above *above)
{
	hist_free(&above->hist);
	bytes_free(&above->seconds);
	bytes_free(&above->list);
}

static void write_level(const struct above *above, struct record *record, int level, int kind, int64_t since_ns, uint32_t share)
{
	struct bytes *chunk = chunk_begin(record, CHUNK_LEVEL);

	put_u16(chunk, above->series);
	put_u8(chunk, (uint8_t)level);
	put_u8(chunk, (uint8_t)kind);
	put_i64(chunk, above->levels[level]);
	put_i64(chunk, since_ns);
	put_u32(chunk, share);
	put_number(chunk, kind == KIND_LEARNED ? above->taught : 0, 8);
	chunk_end(record);
}

void above_announce(const struct above *above, struct record *record, int64_t first_due_ns)
{
	for (int i = 0; i < above->n_limits; i++)
		write_level(above, record, i, KIND_LIMIT, first_due_ns, 0);
}

/* Looks for the bin of the value of a rank, counted from the smallest. */
struct ranked {
	uint64_t below, rank;
	int32_t bin;
	bool found;
};

static void look(void *data, int32_t bin, uint32_t count)
{
	struct ranked *ranked = data;

	ranked->below += count;
	if (ranked->found || ranked->below < ranked->rank)
		return;
	ranked->found = true;
	ranked->bin = bin;
}

static void learn(struct above *above, struct record *record, int64_t since_ns)
{
	static const uint32_t shares[ABOVE_LEARNED] = { 1000, 100 };

	above->learning = false;
	for (int i = 0; i < ABOVE_LEARNED; i++) {
		uint64_t beyond = above->taught * shares[i] / MILLION;
		struct ranked ranked = { .rank = above->taught - beyond };

		if (beyond < LEAST_ABOVE)
			break;
		hist_each(&above->hist, look, &ranked);
		add_level(above, hist_top(ranked.bin));
		write_level(above, record, above->n_levels - 1, KIND_LEARNED, since_ns, shares[i]);
	}
	hist_free(&above->hist);
}

static void teach(struct above *above, struct record *record, int64_t due_ns, int64_t value)
{
	if (due_ns >= above->learned_at_ns) {
		learn(above, record, due_ns);
		return;
	}
	above->taught++;
	if (hist_add(&above->hist, value) && !record->error)
		record->error = -ENOMEM;
}

static void write_seconds(struct above *above, struct record *record)
{
	if (!above->entries)
		return;
	if (above->seconds.failed && !record->error)
		record->error = -ENOMEM;

	struct bytes *chunk = chunk_begin(record, CHUNK_ABOVE);

	put_u16(chunk, above->series);
	put_u16(chunk, 0);
	put_u32(chunk, (uint32_t)above->first_second);
	put_u32(chunk, above->entries);
	put_bytes(chunk, above->seconds.data, above->seconds.length);
	above->seconds.length = 0;
	above->entries = 0;
	chunk_end(record);
}

/* The newest second goes to those before it. */
static void end_second(struct above *above)
{
	for (int i = 0; i < above->n_levels; i++) {
		if (!above->ran[i] && !above->missed[i])
			continue;
		if (!above->entries)
			above->first_second = above->last_second = above->second;
		put_varint(&above->seconds, (uint64_t)(above->second - above->last_second) * LEVEL_STEP + (uint64_t)i);
		put_varint(&above->seconds, above->ran[i]);
		put_varint(&above->seconds, above->missed[i]);
		above->ran[i] = above->missed[i] = 0;
		above->last_second = above->second;
		above->entries++;
	}
}

static void begin_second(struct above *above, struct record *record, int64_t second)
{
	if (second == above->second)
		return;
	end_second(above);
	above->second = second;
	if (above->seconds.length >= SECONDS_BYTES)
		write_seconds(above, record);
}

static void write_list(struct above *above, struct record *record)
{
	if (!above->n_list)
		return;
	if (above->list.failed && !record->error)
		record->error = -ENOMEM;

	struct bytes *chunk = chunk_begin(record, CHUNK_EXCEEDED);

	put_u16(chunk, above->series);
	put_u16(chunk, above->ended);
	put_u32(chunk, above->n_list);
	put_bytes(chunk, above->list.data, above->list.length);
	above->list.length = 0;
	above->last_index = above->last_due_ns = 0;
	above->n_list = 0;
	above->ended = 0;
	chunk_end(record);
}

static uint64_t zigzag(int64_t value)
{
	return ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
}

/* lists: the limits that the value exceeds. */
static void list(struct above *above, struct record *record, uint64_t index, int64_t due_ns, int64_t value, uint32_t lists)
{
	for (int i = 0; i < above->n_limits; i++) {
		if (!(lists & 1U << i))
			continue;
		if (above->listed[i] == ABOVE_LIST_MOST)
			lists &= ~(1U << i);
		else if (++above->listed[i] == ABOVE_LIST_MOST)
			above->ended |= (uint16_t)(1U << i);
	}
	if (!lists)
		return;

	put_varint(&above->list, index - (uint64_t)above->last_index);
	put_varint(&above->list, zigzag(due_ns - above->last_due_ns));
	put_varint(&above->list, zigzag(value));
	put_varint(&above->list, lists);
	above->last_index = (int64_t)index;
	above->last_due_ns = due_ns;
	if (++above->n_list == ABOVE_LIST)
		write_list(above, record);
}

void above_ran(struct above *above, struct record *record, uint64_t index, int64_t due_ns, int64_t second, int64_t value)
{
	uint32_t exceeded = 0;

	if (above->learning)
		teach(above, record, due_ns, value);
	if (value <= above->lowest)
		return;
	begin_second(above, record, second);
	for (int i = 0; i < above->n_levels; i++) {
		if (value <= above->levels[i])
			continue;
		above->ran[i]++;
		if (i >= above->n_limits)
			continue;
		exceeded |= 1U << i;
		if (above->tell)
			over_add(&above->overs[i], above->thread, above->levels[i], due_ns, second, value);
	}
	if (exceeded)
		list(above, record, index, due_ns, value, exceeded);
}

void above_missed(struct above *above, struct record *record, int64_t second, int64_t late)
{
	if (late <= above->lowest)
		return;
	begin_second(above, record, second);
	for (int i = 0; i < above->n_levels; i++) {
		if (late <= above->levels[i])
			continue;
		above->missed[i]++;
		if (above->tell && i < above->n_limits)
			above->overs[i].count++;
	}
}

void above_flush(struct above *above, struct record *record)
{
	end_second(above);
	write_seconds(above, record);
	write_list(above, record);
}

void above_tell(struct above *above)
{
	for (int i = 0; i < above->n_limits; i++)
		over_tell(&above->overs[i], above->thread, above->levels[i]);
}

void over_tell(struct over *over, int thread, int64_t limit_ns)
{
	if (over->count == over->told)
		return;
	over->told = over->count;
	fprintf(stderr, "over thread=%d limit_ns=%lld second=%lld worst_ns=%lld begin_ns=%lld end_ns=%lld count=%llu\n", thread,
		(long long)limit_ns, (long long)over->second, (long long)over->worst_ns, (long long)over->begin_ns,
		(long long)over->end_ns, (unsigned long long)over->count);
}

void over_add(struct over *over, int thread, int64_t limit_ns, int64_t due_ns, int64_t second, int64_t value_ns)
{
	int64_t end_ns = due_ns + (value_ns - limit_ns);

	if (over->count && second == over->second && due_ns - over->end_ns < OVER_APART_NS) {
		if (value_ns > over->worst_ns)
			over->worst_ns = value_ns;
		if (end_ns > over->end_ns)
			over->end_ns = end_ns;
		over->count++;
		return;
	}
	over_tell(over, thread, limit_ns);
	*over = (struct over){ second, value_ns, due_ns, end_ns, 1, 0 };
}
