/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/pieces.h"

#include <string.h>

static void put_before(struct page_pieces *pieces, struct page_place begin, struct page_cut *added)
{
	*added = (struct page_cut){ begin, pieces->begins[0] };
	memmove(pieces->begins + 1, pieces->begins, (size_t)pieces->n * sizeof(*pieces->begins));
	pieces->begins[0] = begin;
	pieces->n++;
}

static void put_behind(struct page_pieces *pieces, struct page_place end, struct page_cut *added)
{
	*added = (struct page_cut){ pieces->end, end };
	pieces->begins[pieces->n++] = pieces->end;
	pieces->end = end;
}

int pieces_add(struct page_pieces *pieces, const struct page_cut *cut, const struct page_cut *whole, struct page_cut added[2])
{
	int n = 0;

	if (!pieces->n) {
		*pieces = (struct page_pieces){ 1, { cut->from }, cut->to };
		added[0] = *cut;
		return 1;
	}
	if (cut->from.at < pieces->begins[0].at)
		put_before(pieces, pieces->n < PIECES_EXACT ? cut->from : whole->from, &added[n++]);
	if (cut->to.at > pieces->end.at)
		put_behind(pieces, pieces->n < PIECES_EXACT ? cut->to : whole->to, &added[n++]);
	return n;
}

int pieces_behind(const struct page_pieces *pieces, const struct page_cut *cut)
{
	int i = pieces->n;

	while (i > 0 && pieces->begins[i - 1].at >= cut->to.at)
		i--;
	return i;
}

int pieces_first(const struct page_pieces *pieces, const struct page_cut *cut)
{
	int i = pieces->n - 1;

	while (i > 0 && pieces->begins[i].at > cut->from.at)
		i--;
	return i;
}
