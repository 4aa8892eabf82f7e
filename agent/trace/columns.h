/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of pages, laid out so that they pack well: what events of one kind have in common stands together (docs/record-format.md, "The
 * columns of events"). Nothing of an event is changed or left out.
 */
#ifndef RTPROOF_TRACE_COLUMNS_H
#define RTPROOF_TRACE_COLUMNS_H

#include "record/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the entries, in bytes; the largest page fits. An entry has at least eight. */
enum { COLUMNS_MOST = 65536, COLUMNS_ENTRIES = COLUMNS_MOST / 8, COLUMNS_PIECES = 256, COLUMNS_KINDS = 256 };

/* A part of a page, whose entries stay where they are. */
struct piece {
	uint64_t stamp; /* from which its first entry counts */
	uint16_t cpu;
	bool lost; /* events before it are */
	const uint8_t *data;
	size_t length;
};

/* Entries of the same form, and as a rule of the same event. */
struct entry_kind {
	uint8_t type, event[2];
	bool any; /* event */
	uint16_t words;
};

struct columns {
	int n_pieces, n_kinds;
	uint32_t n_entries;
	size_t length;
	struct piece pieces[COLUMNS_PIECES];
	uint16_t entries_of[COLUMNS_PIECES];
	struct entry_kind kinds[COLUMNS_KINDS];
	const uint8_t *entries[COLUMNS_ENTRIES];
	uint8_t kind_of[COLUMNS_ENTRIES];
};

/* False if there is no room for it, which there always is if nothing has been added. */
bool columns_add(struct columns *columns, const struct piece *piece);

/* Appends what was added, and is empty again. */
void put_columns(struct bytes *bytes, struct columns *columns);

#endif
