/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/symbols.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 2 * SYMBOLS_MOST, NAME = 96, FUNCTION_MOST = 64 * 1024 };

struct line {
	uint64_t address;
	char type;
	char name[NAME]; /* and the module's behind a tab, in brackets; what is longer is cut */
};

/* "ffffffff81000000 T _stext", and a tab and "[module]" behind those of modules. False at the end. */
static bool next_line(FILE *file, struct line *line)
{
	char text[1024], *rest;

	while (fgets(text, sizeof(text), file)) {
		line->address = strtoull(text, &rest, 16);
		if (rest == text || strlen(rest) < 4)
			continue;
		line->type = rest[1];
		rest[strcspn(rest, "\n")] = '\0';
		snprintf(line->name, sizeof(line->name), "%s", rest + 3);
		return true;
	}
	return false;
}

static bool is_function(const struct line *line)
{
	return strchr("tTwW", line->type) != NULL;
}

/* No file tells how long the code is that the kernel makes by itself, such as programs of BPF. */
static void add_made(struct symbols *symbols, uint64_t address)
{
	struct code_range *range = symbols->ranges + 1, *behind = symbols->ranges + symbols->n_ranges;

	while (range < behind && (address + FUNCTION_MOST < range->first || address > range->behind))
		range++;
	if (range == symbols->ranges + SYMBOLS_RANGES)
		return;
	if (range == behind)
		symbols->ranges[symbols->n_ranges++] = (struct code_range){ address, address };
	range->first = address < range->first ? address : range->first;
	range->behind = address + FUNCTION_MOST > range->behind ? address + FUNCTION_MOST : range->behind;
}

/* The kernel's own code lies between two symbols. What is in brackets lies elsewhere. */
static int find_code(const char *kallsyms, struct symbols *symbols)
{
	struct code_range *range = &symbols->ranges[0];
	FILE *file = fopen(kallsyms, "re");
	struct line line;
	int err = file ? -ENOENT : -errno;

	symbols->n_ranges = 1;
	while (file && err != -EPERM && next_line(file, &line)) {
		if (is_function(&line) && strchr(line.name, '['))
			add_made(symbols, line.address);
		if (!strcmp(line.name, "_stext"))
			range->first = line.address;
		else if (!strcmp(line.name, "_etext"))
			range->behind = line.address;
		else
			continue;
		err = line.address ? 0 : -EPERM;
	}
	symbols->n_lasting = symbols->n_ranges;
	if (file)
		fclose(file);
	return err ? err : range->first < range->behind ? 0 : -ENOENT;
}

/* "nf_tables 294912 0 - Live 0xffffffffc0a10000" */
static void add_modules(struct symbols *symbols, const char *modules)
{
	FILE *file = fopen(modules, "re");
	char text[4096];

	while (file && symbols->n_ranges < SYMBOLS_RANGES && fgets(text, sizeof(text), file)) {
		const char *size = strchr(text, ' '), *at = strstr(text, " 0x");
		struct code_range *range = &symbols->ranges[symbols->n_ranges];

		range->first = size && at ? strtoull(at, NULL, 16) : 0;
		range->behind = range->first + (size ? strtoull(size, NULL, 10) : 0);
		symbols->n_ranges += range->first > 0;
	}
	if (file)
		fclose(file);
}

void symbols_renew(struct symbols *symbols, const char *modules)
{
	if (!symbols->word)
		return;
	symbols->n_ranges = symbols->n_lasting;
	add_modules(symbols, modules);
	symbols->lowest = UINT64_MAX;
	symbols->behind = 0;
	for (int i = 0; i < symbols->n_ranges; i++) {
		const struct code_range *range = &symbols->ranges[i];

		symbols->lowest = range->first < symbols->lowest ? range->first : symbols->lowest;
		symbols->behind = range->behind > symbols->behind ? range->behind : symbols->behind;
	}
}

int symbols_open(struct symbols *symbols, int word, const char *kallsyms, const char *modules)
{
	memset(symbols, 0, sizeof(*symbols));
	int err = find_code(kallsyms, symbols);

	if (err)
		return err;
	symbols->seen = calloc(PLACES, sizeof(*symbols->seen));
	if (!symbols->seen)
		return -ENOMEM;
	symbols->word = word;
	symbols_renew(symbols, modules);
	return 0;
}

static bool is_code(const struct symbols *symbols, uint64_t address)
{
	for (int i = 0; i < symbols->n_ranges; i++)
		if (address >= symbols->ranges[i].first && address < symbols->ranges[i].behind)
			return true;
	return false;
}

static void add(struct symbols *symbols, uint64_t address)
{
	uint32_t place = (uint32_t)(address ^ address >> 13) % PLACES;

	while (symbols->seen[place] && symbols->seen[place] != address)
		place = (place + 1) % PLACES;
	if (symbols->seen[place] || symbols->n_seen == SYMBOLS_MOST)
		return;
	symbols->seen[place] = address;
	symbols->n_seen++;
}

void symbols_see(struct symbols *symbols, const uint8_t *bytes, size_t length)
{
	if (!symbols->word)
		return;
	for (size_t at = 0; at + (size_t)symbols->word <= length; at += 4) {
		uint64_t address;
		uint32_t half;

		if (symbols->word == 8) {
			memcpy(&address, bytes + at, 8);
		} else {
			memcpy(&half, bytes + at, 4);
			address = half;
		}
		if (address >= symbols->lowest && address < symbols->behind && is_code(symbols, address))
			add(symbols, address);
	}
}

/* What is found for an address: the nearest function that begins below it, or there. */
struct found {
	uint64_t seen;
	struct line function;
};

static int by_address(const void *a, const void *b)
{
	uint64_t one = ((const struct found *)a)->seen, other = ((const struct found *)b)->seen;

	return one < other ? -1 : one > other;
}

/* Modules' symbols are in no order, so each line is offered to all addresses that a function from there on could hold. */
static void offer(struct found *found, int n, const struct line *line)
{
	int low = 0, high = n;

	while (low < high) {
		int middle = (low + high) / 2;

		if (found[middle].seen < line->address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < n && found[low].seen - line->address < FUNCTION_MOST; low++)
		if (found[low].function.address < line->address)
			found[low].function = *line;
}

static void look_up(struct found *found, int n, const char *kallsyms)
{
	FILE *file = fopen(kallsyms, "re");
	struct line line;

	while (file && next_line(file, &line))
		if (is_function(&line))
			offer(found, n, &line);
	if (file)
		fclose(file);
}

void symbols_tell(struct symbols *symbols, const char *kallsyms, struct bytes *text)
{
	struct found *found = symbols->n_seen ? calloc((size_t)symbols->n_seen, sizeof(*found)) : NULL;
	uint64_t told = 0;
	int n = 0;

	for (int place = 0; found && place < PLACES; place++)
		if (symbols->seen[place])
			found[n++].seen = symbols->seen[place];
	if (!found)
		return;
	qsort(found, (size_t)n, sizeof(*found), by_address);
	look_up(found, n, kallsyms);
	for (int i = 0; i < n; i++) {
		const struct line *function = &found[i].function;
		char line[NAME + 32];

		if (function->address == told) /* or 0: no function is near */
			continue;
		told = function->address;
		put_bytes(text, line, (size_t)snprintf(line, sizeof(line), "%0*llx %c %s\n", 2 * symbols->word,
						       (unsigned long long)told, function->type, function->name));
	}
	free(found);
}

void symbols_close(struct symbols *symbols)
{
	free(symbols->seen);
	symbols->seen = NULL;
	symbols->word = 0;
}
