/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small encoder of raw DEFLATE (RFC 1951), so that the host unpacks it with zlib. It knows one block with the fixed codes, and looks
 * at the DEFLATE_TRIES latest places with the same hash for each match, for 80 KiB of memory.
 */
#ifndef RTPROOF_DEFLATE_H
#define RTPROOF_DEFLATE_H

#include "record/bytes.h"

enum { DEFLATE_MOST = 131072, DEFLATE_PLACES = 4096, DEFLATE_FARTHEST = 32768, DEFLATE_TRIES = 64 };

/* Behind where each hash was seen last, and how far it was before that; 0: nowhere. Its content before a call does not matter. */
struct deflate_table {
	uint32_t place[DEFLATE_PLACES];
	uint16_t before[DEFLATE_FARTHEST];
};

/* Appends n bytes (at most DEFLATE_MOST) as one stream. */
void put_deflated(struct bytes *bytes, const uint8_t *data, size_t n, struct deflate_table *table);

#endif
