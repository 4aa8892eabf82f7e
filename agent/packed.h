/* SPDX-License-Identifier: Apache-2.0 */
/* The packed array of docs/record-format.md: frame of reference, bit planes, exceptions. */
#ifndef RTPROOF_PACKED_H
#define RTPROOF_PACKED_H

#include "bytes.h"

enum { PACKED_MOST = 65536 };

/* Appends n values (at most PACKED_MOST) in the smallest of the encodings that it tries. */
void put_packed(struct bytes *bytes, const int64_t *values, uint32_t n);

#endif
