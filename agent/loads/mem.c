/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that go through more memory than the caches hold: they copy it, read it in order, or change it here and there. So
 * the real-time task finds the caches cold and the memory bus in use.
 */
#include "system/sys.h"

#include "loads/load.h"

#include <string.h>

enum { WORKERS, MIB, WAY };
enum { MIB_PRESET = 64, LINE = 64, WAY_LENGTH = 6 };

static const struct load_option options[] = {
	{ "workers", "processes (default: one for each CPU)", 1, LOAD_SLOTS, LOAD_PER_CPU },
	{ "mib", "memory of each in MiB (default: 64; all at most a quarter of the available memory)", 1, 65536, 0 },
	{ "way", "copy, scan or random (default: each in turn)", 4, WAY_LENGTH, LOAD_TEXT },
	{ NULL, NULL, 0, 0, 0 },
};

typedef void piece_work(char *region, size_t half, size_t at, uint32_t *x);

static void copy(char *region, size_t half, size_t at, uint32_t *x)
{
	(void)x;
	memcpy(region + at, region + half + at, LOAD_MIB);
}

static void scan(char *region, size_t half, size_t at, uint32_t *x)
{
	const volatile char *from = region + at;

	(void)half, (void)x;
	for (size_t i = 0; i < LOAD_MIB; i += LINE)
		(void)from[i];
}

static void change(char *region, size_t half, size_t at, uint32_t *x)
{
	(void)at;
	for (int i = 0; i < LOAD_MIB / LINE; i++)
		region[load_random(x) % half]++;
}

static const struct {
	char name[WAY_LENGTH + 1];
	piece_work *work;
} ways[] = { { "copy", copy }, { "scan", scan }, { "random", change } };

enum { WAYS = sizeof(ways) / sizeof(*ways) };

static bool is_wanted(const struct load_order *order, int way)
{
	return !order->texts[WAY] || !strcmp(order->texts[WAY], ways[way].name);
}

static const char *unsupported(const struct load_order *order)
{
	for (int way = 0; way < WAYS; way++)
		if (is_wanted(order, way))
			return NULL;
	return "way is copy, scan or random";
}

static int prepare(struct load_order *order)
{
	return load_share_memory(order, MIB, MIB_PRESET, order->values[WORKERS]);
}

/* Half of the memory is copied to the other half, each MiB of which is one piece. */
static int work(const struct load_order *order, struct load_slot *slot)
{
	size_t half = (size_t)((order->values[MIB] + 1) / 2) * LOAD_MIB;
	char *region = load_map(2 * half);
	uint32_t x = LOAD_SEED;

	if (!region)
		return -ENOMEM;
	memset(region, 1, 2 * half); /* pages that were never written to are all one page */
	for (int way = 0;; way = (way + 1) % WAYS)
		for (size_t at = 0; at < half && is_wanted(order, way); at += LOAD_MIB, slot->work++)
			ways[way].work(region, half, at, &x);
}

const struct load load_mem = {
	.name = "mem",
	.help = "more memory than the caches hold copied, read and changed",
	.unit = "MiB",
	.options = options,
	.unsupported = unsupported,
	.prepare = prepare,
	.work = work,
};
