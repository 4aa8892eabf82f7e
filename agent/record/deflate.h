/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small encoder of raw DEFLATE (RFC 1951), so that the host unpacks it with zlib. It knows one block with the fixed codes and looks
 * at one earlier place for each match: pages of a trace become about a quarter, for 8 KiB of memory.
 */
#ifndef RTPROOF_DEFLATE_H
#define RTPROOF_DEFLATE_H

#include "record/bytes.h"

enum { DEFLATE_MOST = 65536, DEFLATE_PLACES = 4096 };

/* Where each hash was seen last. Its content before a call does not matter. */
struct deflate_table {
	uint16_t place[DEFLATE_PLACES];
};

/* Appends n bytes (at most DEFLATE_MOST) as one stream. */
void put_deflated(struct bytes *bytes, const uint8_t *data, size_t n, struct deflate_table *table);

#endif
