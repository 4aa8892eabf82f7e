/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/columns.h"

#include "trace/pages.h"

#include <string.h>

/*
 * So many kinds know their event. The others are of one form each: there are 32 types, and of those that have a length of their own no
 * more than 160 lengths find room in COLUMNS_MOST, because they are longer than 28 words. Together they are fewer than COLUMNS_KINDS,
 * unless a page is damaged.
 */
enum { KINDS_OF_EVENTS = 60, COLUMN = 8, HEAD = 4, LENGTH = 4, DELTA_BYTES = 4 };

static struct entry_kind describe(const struct page_entry *entry, const uint8_t *at)
{
	struct entry_kind kind = { .type = (uint8_t)entry->type, .words = (uint16_t)((entry->length - HEAD) / 4) };
	uint32_t event = entry->type ? HEAD : HEAD + LENGTH;

	if (entry->type < ENTRY_PADDING && event + 2 <= entry->length)
		memcpy(kind.event, at + event, 2);
	return kind;
}

static bool is_of(const struct entry_kind *kind, const struct entry_kind *wanted)
{
	return kind->type == wanted->type && kind->words == wanted->words && (kind->any || !memcmp(kind->event, wanted->event, 2));
}

/* -1: there is no room for one more. */
static int find_kind(struct columns *columns, struct entry_kind wanted)
{
	for (int i = 0; i < columns->n_kinds; i++)
		if (is_of(&columns->kinds[i], &wanted))
			return i;
	if (columns->n_kinds == COLUMNS_KINDS)
		return -1;
	wanted.any = columns->n_kinds >= KINDS_OF_EVENTS;
	columns->kinds[columns->n_kinds] = wanted;
	return columns->n_kinds++;
}

bool columns_add(struct columns *columns, const struct piece *piece)
{
	const uint32_t before = columns->n_entries;
	const int kinds_before = columns->n_kinds;

	if (columns->n_pieces == COLUMNS_PIECES || columns->length + piece->length > COLUMNS_MOST)
		return false;
	for (size_t at = 0; at < piece->length;) {
		const uint8_t *data = piece->data + at;
		const struct page_entry entry = page_entry(data, piece->length - at, 0);

		if (!entry.length)
			break; /* nobody can read on from here */
		int kind = find_kind(columns, describe(&entry, data));

		if (kind < 0 && !columns->n_pieces)
			break; /* no kernel has so many on one page: what is left of it is damaged too */
		if (kind < 0) {
			columns->n_entries = before;
			columns->n_kinds = kinds_before;
			return false;
		}
		columns->entries[columns->n_entries] = data;
		columns->kind_of[columns->n_entries++] = (uint8_t)kind;
		at += entry.length;
	}
	columns->entries_of[columns->n_pieces] = (uint16_t)(columns->n_entries - before);
	columns->pieces[columns->n_pieces++] = *piece;
	columns->length += piece->length;
	return true;
}

static void put_heads(struct bytes *bytes, const struct columns *columns)
{
	put_u16(bytes, (uint16_t)columns->n_pieces);
	for (int i = 0; i < columns->n_pieces; i++) {
		put_u16(bytes, columns->pieces[i].cpu);
		put_u8(bytes, columns->pieces[i].lost);
		put_u8(bytes, 0);
		put_u16(bytes, columns->entries_of[i]);
		put_number(bytes, columns->pieces[i].stamp, 8);
	}
	put_u16(bytes, (uint16_t)columns->n_kinds);
	for (int i = 0; i < columns->n_kinds; i++) {
		put_u8(bytes, columns->kinds[i].type);
		put_u16(bytes, columns->kinds[i].words);
	}
}

static void put_deltas(struct bytes *bytes, const struct columns *columns)
{
	for (int byte = 0; byte < DELTA_BYTES; byte++)
		for (uint32_t i = 0; i < columns->n_entries; i++)
			put_u8(bytes, (uint8_t)(page_entry(columns->entries[i], SIZE_MAX, 0).delta >> 8 * byte));
}

static void put_kind(struct bytes *bytes, const struct columns *columns, int kind)
{
	const size_t length = 4 * (size_t)columns->kinds[kind].words;

	for (size_t at = 0; at < length; at += COLUMN)
		for (uint32_t i = 0; i < columns->n_entries; i++)
			if (columns->kind_of[i] == kind)
				put_bytes(bytes, columns->entries[i] + HEAD + at, length - at < COLUMN ? length - at : COLUMN);
}

void put_columns(struct bytes *bytes, struct columns *columns)
{
	put_heads(bytes, columns);
	put_bytes(bytes, columns->kind_of, columns->n_entries);
	put_deltas(bytes, columns);
	for (int kind = 0; kind < columns->n_kinds; kind++)
		put_kind(bytes, columns, kind);
	columns->n_pieces = columns->n_kinds = 0;
	columns->n_entries = 0;
	columns->length = 0;
}
