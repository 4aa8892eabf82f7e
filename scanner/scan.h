/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads blocks of samples and counts them: the fast twin of `part_of_samples` in src/rtproof/summary/series.py, whose numpy code
 * stays the reference. docs/record-format.md describes the bytes (SAMPLES, packed array).
 *
 * Nothing here allocates, calls a library or keeps state of its own. The caller owns all memory, so that any number of threads can
 * scan at once, each with a `struct scan` of its own. src/rtproof/summary/native_scan.py has the same structure for ctypes: all
 * fields are 64 bits wide and in the same order.
 */
#ifndef RTPROOF_SCAN_H
#define RTPROOF_SCAN_H

#include <stdint.h>

enum { SCAN_ABI = 2 };

enum scan_code {
	SCAN_DONE = 0,
	SCAN_CHANGED = 1,  /* bytes are not what they were when the record was opened */
	SCAN_UNSORTED = 2, /* due times go back, or lie centuries away: the caller counts this task in its own way */
	SCAN_STALL = 3,    /* a gap is longer than longest_gap_ns */
};

enum { LARGEST_BLOCK = 65536, COUNT_BITS = 26, MOST_LEVELS = 32 };

struct scan {
	/* The series, and what is asked. */
	int64_t on_grid, by_period, chained_cycles, period_ns, longest_gap_ns;
	int64_t n_slice_starts;
	const int64_t *slice_starts;

	/*
	 * counts[v]: how often the value v occurred, for 0 <= v < window, in the lower COUNT_BITS. The upper bits hold, from the
	 * beginning on, how many levels are below v. The caller takes the counts away before they need more bits.
	 */
	int64_t window;
	uint32_t *counts;
	/* rest[0..n_rest]: the other values, in order. Room for every sample of a call. */
	int64_t n_rest;
	int64_t *rest;

	/* One entry for each gap: due time and value of the sample before it, missed activations. Room for every sample of a call. */
	int64_t n_gaps;
	int64_t *gap_due_ns, *gap_value, *gap_missed;

	/* One entry for each second in which a sample was due, in order; the first may go on with the second of the call before. */
	int64_t n_seconds;
	int64_t *second, *obtained, *largest;

	/* The k largest samples so far, as a heap: the least of them first, of equal values the latest. */
	int64_t k, n_top;
	int64_t *top_value, *top_index, *top_due_ns;

	/*
	 * above[unit * (n_levels + 1) + c]: samples of the unit that are above exactly c levels. units 0: no such counts.
	 */
	int64_t origin_ns, unit_ns, units, n_levels;
	const int64_t *levels;
	int64_t *above;

	/* Sums, and the first and last due times, those of missed activations included. */
	int64_t samples, pairs, catch_up_pairs;
	uint64_t products_low;
	int64_t products_high, has_reach, first_due_ns, last_due_ns;

	/* What the next block needs of the one before. */
	int64_t has_previous, next_index, previous_value, previous_wake_ns, previous_due_ns, was_long;

	/* Scratch for the samples of a block: LARGEST_BLOCK + 8 elements of 64 bits. */
	void *scratch;
};

#define EXPORT __attribute__((visibility("default")))

EXPORT int64_t scan_abi(void);

/* The size of struct scan, which the caller compares with its own. */
EXPORT int64_t scan_size(void);

/* Fills crc_tables with 16 * 256 numbers. */
EXPORT void scan_prepare(uint32_t *crc_tables);

/*
 * Counts n blocks. data + start[i]: the chunk of block i, whose payload is length[i] bytes behind its header of 20. The first lead
 * blocks are only what the next one follows. Returns a scan_code; unless it is SCAN_DONE, the numbers are of no use.
 */
EXPORT int64_t scan_blocks(struct scan *scan, const uint32_t *crc_tables, const uint8_t *data, const int64_t *start,
			   const int64_t *length, int64_t n, int64_t lead);

/* What scan_walk tells of a chunk. place: of its header. Of a block of samples, all columns; of another chunk, 0 from plain on. */
enum walk_column { WALK_PLACE, WALK_LENGTH, WALK_TYPE, WALK_SEQUENCE, WALK_PLAIN, WALK_SERIES, WALK_INDEX, WALK_DUE_NS, WALK_COUNT,
		   WALK_COLUMNS };

/*
 * Walks over the chunks from the first byte on, which is that of a header, and fills a row of WALK_COLUMNS numbers for each. plain: a
 * block of samples in which nothing was missed and all of whose bytes are right; any other is the caller's to decode. Returns how
 * many rows it filled. It ends at the first chunk that is not whole or not sound, and when there are no rows left.
 */
EXPORT int64_t scan_walk(const uint32_t *crc_tables, const uint8_t *data, int64_t size, int64_t *rows, int64_t n_rows);

#endif
