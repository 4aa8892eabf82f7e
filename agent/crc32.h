/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32 of IEEE 802.3, as zlib computes it, so that the host checks chunks with a library. */
#ifndef RTPROOF_CRC32_H
#define RTPROOF_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Start with crc 0; feed the result back in to go on. */
uint32_t crc32_update(uint32_t crc, const uint8_t *data, size_t n);

#endif
