/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "hist.h"


enum { LAST_BIN = 1024 + 53 * 512 - 1, VALUES = 5000 };

/* Smallest and largest value of a bin, by turning the formula of docs/record-format.md around. */
static void edges(int32_t bin, int64_t *low, int64_t *high)
{
	if (bin < 0) {
		edges(-1 - bin, high, low);
		*low = -1 - *low;
		*high = -1 - *high;
		return;
	}
	int shift = bin < 1024 ? 0 : (bin - 1024) / 512 + 1;
	uint64_t step = bin < 1024 ? (uint64_t)bin : 512 + (uint64_t)(bin - 1024) % 512;

	*low = (int64_t)(step << shift);
	*high = (int64_t)(((step + 1) << shift) - 1);
}

static void every_bin_holds_exactly_its_values(void)
{
	int64_t low, high, before = INT64_MIN;

	for (int32_t bin = -1 - LAST_BIN; bin <= LAST_BIN; bin++) {
		edges(bin, &low, &high);
		CHECK(low <= high && hist_bin(low) == bin && hist_bin(high) == bin && hist_top(bin) == high);
		CHECK(bin == -1 - LAST_BIN ? low == INT64_MIN : low == before + 1);
		before = high;

		/* Half the width, at the middle, is at most 1/1024 of any value in the bin. */
		uint64_t width = (uint64_t)high - (uint64_t)low + 1, least = (uint64_t)(low < 0 ? -1 - high : low);

		CHECK(width == 1 || (double)width / 2 <= (double)least / 1024);
	}
	CHECK(before == INT64_MAX);
	CHECK(LAST_BIN < HIST_PAGES * HIST_PAGE);
}

struct seen {
	int32_t bins[VALUES];
	uint32_t counts[VALUES];
	int n;
};

static void note(void *data, int32_t bin, uint32_t count)
{
	struct seen *seen = data;

	CHECK(seen->n < VALUES);
	CHECK(seen->n == 0 || bin > seen->bins[seen->n - 1]);
	seen->bins[seen->n] = bin;
	seen->counts[seen->n++] = count;
}

static uint32_t occurrences(const int64_t *values, int32_t bin)
{
	uint32_t n = 0;

	for (int i = 0; i < VALUES; i++)
		n += hist_bin(values[i]) == bin;
	return n;
}

static void counts_are_those_of_the_values(void)
{
	static int64_t values[VALUES] = { INT64_MIN, INT64_MAX, 0, -1, 1, 1023, 1024, -1024, -1025 };
	static struct seen seen;
	struct hist hist = { 0 };
	uint64_t state = 3, total = 0;

	for (int i = 9; i < VALUES; i++)
		values[i] = (int64_t)random_bits(&state) >> random_below(&state, 63);
	for (int i = 0; i < VALUES; i++)
		CHECK(hist_add(&hist, values[i]) == 0);
	hist_each(&hist, note, &seen);
	CHECK(seen.bins[0] == -1 - LAST_BIN && seen.bins[seen.n - 1] == LAST_BIN);
	for (int i = 0; i < seen.n; i++) {
		CHECK(seen.counts[i] == occurrences(values, seen.bins[i]));
		total += seen.counts[i];
	}
	CHECK(total == VALUES);

	hist_clear(&hist);
	seen.n = 0;
	hist_each(&hist, note, &seen);
	CHECK(seen.n == 0);
	CHECK(hist_add(&hist, 5) == 0);
	hist_each(&hist, note, &seen);
	CHECK(seen.n == 1 && seen.bins[0] == 5 && seen.counts[0] == 1);
	hist_free(&hist);
	for (int i = 0; i < HIST_PAGES; i++)
		CHECK(!hist.negative[i] && !hist.positive[i]);
}

int main(void)
{
	every_bin_holds_exactly_its_values();
	counts_are_those_of_the_values();
	return EXIT_SUCCESS;
}
