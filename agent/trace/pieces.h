/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pieces of a page are in the record. Together they are one stretch of it, which grows at its ends as windows need more. A piece
 * is named by the stamp of its begin.
 */
#ifndef RTPROOF_TRACE_PIECES_H
#define RTPROOF_TRACE_PIECES_H

#include "trace/pages.h"

/* Beyond PIECES_EXACT, a piece has all that is left of the page on its side. */
enum { PIECES_EXACT = 4, PIECES_MOST = PIECES_EXACT + 2 };

struct page_pieces {
	int n;
	struct page_place begins[PIECES_MOST], end;
};

/* Adds what of a cut is not there yet: how many pieces, of which added has the places. */
int pieces_add(struct page_pieces *pieces, const struct page_cut *cut, const struct page_cut *whole, struct page_cut added[2]);

/* The number of the first piece that has something of a cut, and that behind the last one. */
int pieces_first(const struct page_pieces *pieces, const struct page_cut *cut);
int pieces_behind(const struct page_pieces *pieces, const struct page_cut *cut);

#endif
