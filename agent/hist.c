/* SPDX-License-Identifier: Apache-2.0 */
#include "hist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int32_t bin_of_magnitude(uint64_t value)
{
	if (value < 1024)
		return (int32_t)value;
	int e = 63 - __builtin_clzll(value);

	return 1024 + (e - 10) * HIST_PAGE + (int32_t)(value >> (e - 9)) - HIST_PAGE;
}

int32_t hist_bin(int64_t value)
{
	return value >= 0 ? bin_of_magnitude((uint64_t)value) : -1 - bin_of_magnitude((uint64_t)(-1 - value));
}

/* Smallest value of a bin, and how many values it has. */
static uint64_t bin_bottom(int32_t magnitude, uint64_t *values)
{
	int shift = magnitude < 1024 ? 0 : (magnitude - 1024) / HIST_PAGE + 1;

	*values = 1ULL << shift;
	return shift ? (uint64_t)(HIST_PAGE + (magnitude - 1024) % HIST_PAGE) << shift : (uint64_t)magnitude;
}

int64_t hist_top(int32_t bin)
{
	uint64_t values, bottom = bin_bottom(bin >= 0 ? bin : -1 - bin, &values);

	return bin >= 0 ? (int64_t)(bottom + values - 1) : -1 - (int64_t)bottom;
}

int hist_add(struct hist *hist, int64_t value)
{
	int32_t bin = hist_bin(value);
	int32_t magnitude = bin >= 0 ? bin : -1 - bin;
	uint32_t **page = (bin >= 0 ? hist->positive : hist->negative) + magnitude / HIST_PAGE;

	if (!*page)
		*page = calloc(HIST_PAGE, sizeof(**page));
	if (!*page)
		return -ENOMEM;
	(*page)[magnitude % HIST_PAGE]++;
	return 0;
}

void hist_each(const struct hist *hist, void (*visit)(void *, int32_t, uint32_t), void *data)
{
	for (int32_t bin = -HIST_PAGES * HIST_PAGE; bin < HIST_PAGES * HIST_PAGE; bin++) {
		int32_t magnitude = bin >= 0 ? bin : -1 - bin;
		uint32_t *page = (bin >= 0 ? hist->positive : hist->negative)[magnitude / HIST_PAGE];

		if (!page)
			bin += HIST_PAGE - 1; /* bins of a missing page are all empty; pages begin at multiples */
		else if (page[magnitude % HIST_PAGE])
			visit(data, bin, page[magnitude % HIST_PAGE]);
	}
}

static void each_page(struct hist *hist, void (*act)(uint32_t **))
{
	for (int i = 0; i < HIST_PAGES; i++) {
		act(&hist->negative[i]);
		act(&hist->positive[i]);
	}
}

static void clear_page(uint32_t **page)
{
	if (*page)
		memset(*page, 0, HIST_PAGE * sizeof(**page));
}

static void free_page(uint32_t **page)
{
	free(*page);
	*page = NULL;
}

void hist_clear(struct hist *hist)
{
	each_page(hist, clear_page);
}

void hist_free(struct hist *hist)
{
	each_page(hist, free_page);
}
