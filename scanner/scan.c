/* SPDX-License-Identifier: Apache-2.0 */
#include "scan.h"

#include <stdbool.h>
#include <stddef.h>

enum { HEADER = 20, CHECKED = 16, SAMPLES_TYPE = 5, SAMPLES_HEAD = 20, ARRAY_HEAD = 16, SECOND_NS = 1000000000 };
static const uint32_t MAGIC = 0x1A505452;
/* Due times beyond are left to the caller, so that no sum of them overflows. */
static const int64_t FARTHEST_NS = INT64_C(1) << 61;

struct array {
	uint32_t n, exceptions;
	int64_t base;
	unsigned width, value_size;
	const uint8_t *planes, *positions, *values, *end;
};

struct block {
	int64_t first_index, first_due_ns;
	struct array values, positions, sizes;
};

/* Little-endian numbers anywhere. The compiler makes one load of each on the machines that have it. */
static inline uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t get32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t get64(const uint8_t *at)
{
	return get32(at) | (uint64_t)get32(at + 4) << 32;
}

EXPORT int64_t scan_abi(void)
{
	return SCAN_ABI;
}

EXPORT int64_t scan_size(void)
{
	return (int64_t)sizeof(struct scan);
}

/* CRC-32 (IEEE 802.3), sixteen bytes a step: M. Kounavis and F. Berry, "Novel table lookup-based algorithms", 2008. */
EXPORT void scan_prepare(uint32_t *crc_tables)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
		crc_tables[i] = crc;
	}
	for (uint32_t i = 256; i < 16 * 256; i++)
		crc_tables[i] = crc_tables[i - 256] >> 8 ^ crc_tables[crc_tables[i - 256] & 0xFF];
}

static uint32_t crc_add(const uint32_t *t, uint32_t crc, const uint8_t *at, size_t n)
{
	for (; n >= 16; at += 16, n -= 16) {
		const uint32_t a = get32(at) ^ crc, b = get32(at + 4), c = get32(at + 8), d = get32(at + 12);

		crc = t[15 * 256 + (a & 0xFF)] ^ t[14 * 256 + (a >> 8 & 0xFF)] ^ t[13 * 256 + (a >> 16 & 0xFF)] ^ t[12 * 256 + (a >> 24)] ^
		      t[11 * 256 + (b & 0xFF)] ^ t[10 * 256 + (b >> 8 & 0xFF)] ^ t[9 * 256 + (b >> 16 & 0xFF)] ^ t[8 * 256 + (b >> 24)] ^
		      t[7 * 256 + (c & 0xFF)] ^ t[6 * 256 + (c >> 8 & 0xFF)] ^ t[5 * 256 + (c >> 16 & 0xFF)] ^ t[4 * 256 + (c >> 24)] ^
		      t[3 * 256 + (d & 0xFF)] ^ t[2 * 256 + (d >> 8 & 0xFF)] ^ t[256 + (d >> 16 & 0xFF)] ^ t[d >> 24];
	}
	for (; n; at++, n--)
		crc = crc >> 8 ^ t[(crc ^ *at) & 0xFF];
	return crc;
}

static bool has_right_checksum(const uint32_t *tables, const uint8_t *chunk, size_t length)
{
	uint32_t crc = crc_add(tables, 0xFFFFFFFF, chunk, CHECKED);

	return ~crc_add(tables, crc, chunk + HEADER, length) == get32(chunk + CHECKED);
}

static bool is_sound(const uint32_t *tables, const uint8_t *chunk, int64_t length)
{
	return get32(chunk) == MAGIC && get32(chunk + 4) == length && get16(chunk + 8) == SAMPLES_TYPE &&
	       has_right_checksum(tables, chunk, (size_t)length);
}

static size_t plane_bytes(uint32_t n, unsigned width)
{
	size_t sum = 0;

	for (unsigned p = 32; p; p >>= 1)
		sum += width & p ? ((size_t)n * p + 7) / 8 : 0;
	return sum;
}

/* The head of the packed array at `at`, all of whose parts end before `end`. */
static bool open_array(struct array *array, const uint8_t *at, const uint8_t *end)
{
	if (end - at < ARRAY_HEAD)
		return false;
	array->n = get32(at);
	array->base = (int64_t)get64(at + 4);
	array->width = at[12];
	array->value_size = at[13];
	array->exceptions = get16(at + 14);
	if (array->n > LARGEST_BLOCK || array->width > 63 || (array->value_size != 4 && array->value_size != 8) ||
	    array->exceptions > array->n)
		return false;
	const size_t planes = plane_bytes(array->n, array->width);
	const size_t rest = (size_t)array->exceptions * (2 + array->value_size);

	array->planes = at + ARRAY_HEAD;
	if ((size_t)(end - array->planes) < planes + rest)
		return false;
	array->positions = array->planes + planes;
	array->values = array->positions + 2 * (size_t)array->exceptions;
	array->end = array->values + (size_t)array->value_size * array->exceptions;
	for (uint32_t i = 0; i < array->exceptions; i++) {
		const unsigned position = get16(array->positions + (size_t)2 * i);

		if (position >= array->n || (i && position <= get16(array->positions + (size_t)2 * (i - 1))))
			return false;
	}
	return true;
}

static int64_t exception_value(const struct array *array, uint32_t i)
{
	const uint8_t *at = array->values + (size_t)i * array->value_size;

	return array->base + (array->value_size == 4 ? (int64_t)(int32_t)get32(at) : (int64_t)get64(at));
}

/* The elements of a packed array, one after the other. */
struct element_cursor {
	const struct array *array;
	uint32_t at, exception;
};

static int64_t next_element(struct element_cursor *cursor)
{
	const struct array *array = cursor->array;
	const uint32_t i = cursor->at++, n = array->n;
	const uint8_t *plane = array->planes;
	uint64_t element = 0;
	unsigned shift = 0;

	if (cursor->exception < array->exceptions && get16(array->positions + 2 * (size_t)cursor->exception) == i)
		return exception_value(array, cursor->exception++);
	for (unsigned p = 32; p >= 8; p >>= 1) {
		if (!(array->width & p))
			continue;
		const uint8_t *at = plane + (size_t)i * p / 8;

		element |= (uint64_t)(p == 32 ? get32(at) : p == 16 ? get16(at) : at[0]) << shift;
		plane += (size_t)n * p / 8;
		shift += p;
	}
	for (unsigned p = 4; p; p >>= 1) {
		if (!(array->width & p))
			continue;
		const uint32_t m = (n + 8 / p - 1) / (8 / p);

		element |= (uint64_t)(plane[i % m] >> (p * (i / m)) & ((1u << p) - 1)) << shift;
		plane += m;
		shift += p;
	}
	return (int64_t)((uint64_t)array->base + element);
}

/* The gaps of a block. left: how many there are from this one on; behind the last one, position is beyond every sample. */
struct gap_cursor {
	struct element_cursor positions, sizes;
	uint32_t left;
	int64_t position, missed;
};

static void read_gap(struct gap_cursor *gaps)
{
	gaps->position = gaps->left ? next_element(&gaps->positions) : LARGEST_BLOCK;
	gaps->missed = gaps->left ? next_element(&gaps->sizes) : 0;
}

static void open_gaps(struct gap_cursor *gaps, const struct block *block)
{
	*gaps = (struct gap_cursor){ .positions.array = &block->positions, .sizes.array = &block->sizes, .left = block->positions.n };
	read_gap(gaps);
}

static void next_gap(struct gap_cursor *gaps)
{
	gaps->left--;
	read_gap(gaps);
}

static bool open_block(struct block *block, const uint8_t *payload, int64_t length)
{
	const uint8_t *end = payload + length;

	if (length < SAMPLES_HEAD)
		return false;
	block->first_index = (int64_t)get64(payload + 4);
	block->first_due_ns = (int64_t)get64(payload + 12);
	return open_array(&block->values, payload + SAMPLES_HEAD, end) &&
	       open_array(&block->positions, block->values.end, end) &&
	       open_array(&block->sizes, block->positions.end, end) && block->values.n &&
	       block->positions.n == block->sizes.n && block->positions.n <= block->values.n;
}

/* Whether all of an array's elements fit into 32 bits, and their differences too. */
static bool is_narrow(const struct array *array)
{
	const int64_t most = (INT64_C(1) << 29) - 1;

	if (array->width > 28 || array->base < -most || array->base > most)
		return false;
	for (uint32_t i = 0; i < array->exceptions; i++) {
		const int64_t value = exception_value(array, i);

		if (value < -most || value > most)
			return false;
	}
	return true;
}

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static int64_t unit_of(const struct scan *scan, int64_t due_ns)
{
	const int64_t unit = floor_div(due_ns - scan->origin_ns, scan->unit_ns);

	return unit < 0 ? 0 : unit >= scan->units ? scan->units - 1 : unit;
}

static int64_t class_of(const struct scan *scan, int64_t value)
{
	int64_t c = 0;

	while (c < scan->n_levels && scan->levels[c] < value)
		c++;
	return c;
}

static bool is_slice_start(const struct scan *scan, int64_t due_ns)
{
	int64_t low = 0, high = scan->n_slice_starts;

	while (low < high) {
		const int64_t middle = low + (high - low) / 2;

		if (scan->slice_starts[middle] < due_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < scan->n_slice_starts && scan->slice_starts[low] == due_ns;
}

static void add_product(struct scan *scan, __int128 sum)
{
	const uint64_t low = (uint64_t)sum;

	scan->products_low += low;
	scan->products_high += (int64_t)(sum >> 64) + (scan->products_low < low);
}

/* Whether a stands before b in the heap: the smaller value, of equal ones the later. */
static bool leaves_first(const struct scan *scan, int64_t a, int64_t b)
{
	return scan->top_value[a] != scan->top_value[b] ? scan->top_value[a] < scan->top_value[b]
							: scan->top_index[a] > scan->top_index[b];
}

static void swap_top(struct scan *scan, int64_t a, int64_t b)
{
	int64_t *const columns[] = { scan->top_value, scan->top_index, scan->top_due_ns };

	for (int i = 0; i < 3; i++) {
		const int64_t kept = columns[i][a];

		columns[i][a] = columns[i][b];
		columns[i][b] = kept;
	}
}

static void offer_top(struct scan *scan, int64_t value, int64_t index, int64_t due_ns)
{
	int64_t at = 0;

	if (scan->n_top < scan->k) {
		at = scan->n_top++;
	} else if (!scan->k || value <= scan->top_value[0]) {
		return;
	}
	scan->top_value[at] = value;
	scan->top_index[at] = index;
	scan->top_due_ns[at] = due_ns;
	while (at && leaves_first(scan, at, (at - 1) / 2)) {
		swap_top(scan, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
	for (;;) {
		int64_t first = at;

		for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < scan->n_top; child++)
			first = leaves_first(scan, child, first) ? child : first;
		if (first == at)
			return;
		swap_top(scan, at, first);
		at = first;
	}
}

static void add_second(struct scan *scan, int64_t second, int64_t obtained, int64_t largest)
{
	const int64_t last = scan->n_seconds - 1;

	if (last >= 0 && scan->second[last] == second) {
		scan->obtained[last] += obtained;
		scan->largest[last] = scan->largest[last] > largest ? scan->largest[last] : largest;
		return;
	}
	scan->second[last + 1] = second;
	scan->obtained[last + 1] = obtained;
	scan->largest[last + 1] = largest;
	scan->n_seconds++;
}

#define ELEMENT int32_t
#define UNSIGNED uint32_t
#define SUM int64_t
#define NAME(name) name##_narrow
#include "block.h"
#undef ELEMENT
#undef UNSIGNED
#undef SUM
#undef NAME
#define ELEMENT int64_t
#define UNSIGNED uint64_t
#define SUM __int128
#define NAME(name) name##_wide
#include "block.h"

EXPORT int64_t scan_blocks(struct scan *scan, const uint32_t *crc_tables, const uint8_t *data, const int64_t *start,
			   const int64_t *length, int64_t n, int64_t lead)
{
	scan->n_rest = scan->n_gaps = scan->n_seconds = 0;
	for (int64_t i = 0; i < n; i++) {
		const uint8_t *chunk = data + start[i];
		struct block block;

		if (!is_sound(crc_tables, chunk, length[i]) || !open_block(&block, chunk + HEADER, length[i]))
			return SCAN_CHANGED;
		const int64_t code = is_narrow(&block.values) ? count_block_narrow(scan, &block, i < lead)
							      : count_block_wide(scan, &block, i < lead);

		if (code != SCAN_DONE)
			return code;
	}
	return SCAN_DONE;
}

/* Whether the two arrays of gaps from `at` to `end` are those of a block without any, byte by byte. */
static bool has_no_gaps(const uint8_t *at, const uint8_t *end)
{
	if (end - at != (ptrdiff_t)2 * ARRAY_HEAD)
		return false;
	for (int i = 0; i < 2 * ARRAY_HEAD; i++) {
		if (at[i] != (i % ARRAY_HEAD == 13 ? 4 : 0))
			return false;
	}
	return true;
}

static void fill_plain(int64_t *row, const uint8_t *payload, size_t length)
{
	struct array values;

	if (length < SAMPLES_HEAD || !open_array(&values, payload + SAMPLES_HEAD, payload + length) || !values.n ||
	    !has_no_gaps(values.end, payload + length))
		return;
	const int64_t index = (int64_t)get64(payload + 4), due_ns = (int64_t)get64(payload + 12);

	if (index < 0 || index > INT64_MAX - values.n || due_ns <= -FARTHEST_NS || due_ns >= FARTHEST_NS)
		return;
	row[WALK_PLAIN] = 1;
	row[WALK_SERIES] = get16(payload);
	row[WALK_INDEX] = index;
	row[WALK_DUE_NS] = due_ns;
	row[WALK_COUNT] = values.n;
}

EXPORT int64_t scan_walk(const uint32_t *crc_tables, const uint8_t *data, int64_t size, int64_t *rows, int64_t n_rows)
{
	int64_t place = 0, n = 0;

	while (n < n_rows && size - place >= HEADER) {
		const uint8_t *chunk = data + place;
		const int64_t length = get32(chunk + 4), padded = (length + 3) & ~INT64_C(3);

		if (get32(chunk) != MAGIC || padded > size - place - HEADER || !has_right_checksum(crc_tables, chunk, (size_t)length))
			break;
		int64_t *row = rows + n++ * WALK_COLUMNS;

		for (int column = 0; column < WALK_COLUMNS; column++)
			row[column] = 0;
		row[WALK_PLACE] = place;
		row[WALK_LENGTH] = length;
		row[WALK_TYPE] = get16(chunk + 8);
		row[WALK_SEQUENCE] = get32(chunk + 12);
		if (row[WALK_TYPE] == SAMPLES_TYPE)
			fill_plain(row, chunk + HEADER, (size_t)length);
		place += HEADER + padded;
	}
	return n;
}
