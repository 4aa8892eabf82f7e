// SPDX-License-Identifier: GPL-2.0-only
/* Histogram and sums of one stage. */
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "source.h"

int stage_allocate(struct stage *stage)
{
	stage->active = vzalloc(sizeof(*stage->active));
	stage->spare = vzalloc(sizeof(*stage->spare));
	stage->total = vzalloc(sizeof(*stage->total));
	return stage->active && stage->spare && stage->total ? 0 : -ENOMEM;
}

void stage_free(struct stage *stage)
{
	vfree(stage->active);
	vfree(stage->spare);
	vfree(stage->total);
	memset(stage, 0, sizeof(*stage));
}

/* The record's bin of a value from 0 on. */
static unsigned int bin_of(u64 value)
{
	unsigned int e;

	if (value < 1024)
		return value;
	e = fls64(value) - 1;
	return 1024 + (e - 10) * 512 + (unsigned int)(value >> (e - 9)) - 512;
}

static void add_squares(struct bank *bank, u64 low, u64 high)
{
	bank->squares_low += low;
	bank->squares_high += high + (bank->squares_low < low);
}

/* 64 x 64 bits give 128, by halves: no 32-bit kernel has a type that wide. */
static void add_square(struct bank *bank, s64 value)
{
	u64 size = value < 0 ? -(u64)value : (u64)value;
	u64 low = (u32)size, high = size >> 32;
	u64 cross = low * high;

	add_squares(bank, low * low, high * high);
	add_squares(bank, cross << 33, cross >> 31);
}

void stage_add(struct stage *stage, s64 value)
{
	struct bank *bank = stage->active;
	unsigned int bin;

	if (!bank->count || value < bank->min)
		bank->min = value;
	if (!bank->count || value > bank->max)
		bank->max = value;
	bank->count++;
	bank->sum += value;
	add_square(bank, value);
	bin = value < 0 ? 0 : bin_of(value);
	if (value < 0)
		bank->below++;
	else if (bin >= RTPROOF_BINS)
		bank->above++;
	else
		bank->bins[bin]++;
}

static void merge(struct bank *to, const struct bank *from)
{
	unsigned int i;

	if (!from->count)
		return;
	if (!to->count || from->min < to->min)
		to->min = from->min;
	if (!to->count || from->max > to->max)
		to->max = from->max;
	to->count += from->count;
	to->sum += from->sum;
	add_squares(to, from->squares_low, from->squares_high);
	to->below += from->below;
	to->above += from->above;
	for (i = 0; i < RTPROOF_BINS; i++)
		to->bins[i] += from->bins[i];
}

static void report(const struct bank *total, struct rtproof_summary *summary)
{
	summary->count = total->count;
	summary->min = total->min;
	summary->max = total->max;
	summary->sum = total->sum;
	summary->sum_squares_low = total->squares_low;
	summary->sum_squares_high = total->squares_high;
	summary->below = total->below;
	summary->above = total->above;
}

/* With source->control held. The bins are those of stage->total until it is released. */
void stage_total(struct source *source, struct stage *stage, struct rtproof_summary *summary)
{
	raw_spin_lock_irq(&source->lock);
	swap(stage->active, stage->spare);
	summary->lost = source->lost;
	summary->missed = source->missed;
	summary->rests = source->rests;
	raw_spin_unlock_irq(&source->lock);
	merge(stage->total, stage->spare);
	memset(stage->spare, 0, sizeof(*stage->spare));
	report(stage->total, summary);
}
