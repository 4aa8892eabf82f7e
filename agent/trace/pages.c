/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/pages.h"

#include <stdio.h>
#include <string.h>

enum { PAGE_MOST = 1 << 26, LENGTH_BITS = 27, DELTA_BITS = 27, TYPE_BITS = 5, STAMP_BITS = 59 };
#define EVENTS_LOST (1u << 31)

/* "field: local_t commit;	offset:8;	size:8;	signed:1;" */
static int parse_field(const char *text, const char *name, int *offset, int *size)
{
	const char *field = strstr(text, name);

	return field && sscanf(field + strlen(name), " offset:%d; size:%d;", offset, size) == 2 ? 0 : -EINVAL;
}

int page_layout_parse(const char *text, struct page_layout *layout)
{
	int size = 0;
	int err = parse_field(text, " commit;", &layout->commit, &layout->commit_size);

	if (!err)
		err = parse_field(text, " data;", &layout->data, &size);
	if (err || layout->data < 8 || size < 0 || size > PAGE_MOST)
		return -EINVAL;
	if ((layout->commit_size != 4 && layout->commit_size != 8) || layout->commit < 8 || layout->commit + layout->commit_size > layout->data)
		return -EINVAL;
	layout->size = layout->data + size;
	return 0;
}

struct page_head page_head(const struct page_layout *layout, const uint8_t *page)
{
	struct page_head head;
	uint64_t commit = 0;
	uint32_t low;

	memcpy(&head.stamp, page, sizeof(head.stamp));
	if (layout->commit_size == 8) {
		memcpy(&commit, page + layout->commit, 8);
		low = (uint32_t)commit;
	} else {
		memcpy(&low, page + layout->commit, 4);
	}
	head.length = low & ((1u << LENGTH_BITS) - 1);
	head.empty = !head.length;
	head.lost = low & EVENTS_LOST;
	return head;
}

/* What an entry of this type, whose second word is `told`, makes of the time before it. */
static uint64_t time_behind(uint64_t time, uint32_t type, uint32_t delta, uint32_t told)
{
	const uint64_t low = ((uint64_t)1 << STAMP_BITS) - 1, moved = (uint64_t)told << DELTA_BITS | delta;

	if (type == ENTRY_TIME_EXTEND)
		return time + moved;
	if (type != ENTRY_TIME_STAMP)
		return time + delta;
	uint64_t stamp = (time & ~low) | (moved & low);

	return stamp >= time ? stamp : stamp + low + 1;
}

struct page_entry page_entry(const uint8_t *at, size_t left, uint64_t time)
{
	const uint16_t one = 1;
	struct page_entry entry = { 0 };
	uint32_t head, told = 0, length = 8;

	if (left < 8)
		return entry;
	memcpy(&head, at, 4);
	memcpy(&told, at + 4, 4);
	bool little = *(const char *)&one;

	entry.type = little ? head & ((1u << TYPE_BITS) - 1) : head >> DELTA_BITS;
	entry.delta = little ? head >> TYPE_BITS : head & ((1u << DELTA_BITS) - 1);
	if (entry.type > 0 && entry.type < ENTRY_PADDING)
		length = 4 + 4 * entry.type;
	else if (!entry.type || (entry.type == ENTRY_PADDING && entry.delta))
		length = told >= 4 && told <= left ? 4 + (told + 3) / 4 * 4 : 0;
	else if (entry.type == ENTRY_PADDING)
		length = 0;
	entry.length = length <= left ? length : 0;
	entry.time = time_behind(time, entry.type, entry.delta, told);
	return entry;
}

/* Whether something happened there; else it only moves the time. */
static bool is_event(const struct page_entry *entry)
{
	return entry->type < ENTRY_TIME_EXTEND;
}

void page_cut(const struct page_layout *layout, const uint8_t *page, uint64_t from, uint64_t to, struct page_cut *cut)
{
	struct page_head head = page_head(layout, page);
	const uint8_t *data = page + layout->data;
	const uint32_t end = (int)head.length > layout->size - layout->data ? (uint32_t)(layout->size - layout->data) : head.length;
	struct page_place here = { 0, head.stamp }, before = here; /* before: the last place at which one may cut */
	bool enough = false;

	cut->from = here;
	while (!(enough && here.stamp > before.stamp)) {
		const struct page_entry entry = page_entry(data + here.at, end - here.at, here.stamp);

		if (!entry.length)
			break;
		if (here.stamp > before.stamp)
			before = here;
		if (entry.time < from)
			cut->from = before;
		enough = enough || (is_event(&entry) && entry.time > to);
		here = (struct page_place){ here.at + entry.length, entry.time };
	}
	cut->to = here;
}
