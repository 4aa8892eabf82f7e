/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's GPIO character device, version 1 (Linux 4.8) and version 2 (Linux 5.10), as the system calls want it: libc's
 * headers may be older, or have none of it. Documentation/userspace-api/gpio of the kernel describes what is meant.
 */
#ifndef RTPROOF_GPIO_UAPI_H
#define RTPROOF_GPIO_UAPI_H

#include <stdint.h>
#include <sys/ioctl.h>

enum { UAPI_NAME = 32, UAPI_LINES = 64, UAPI_ATTRIBUTES = 10 };

struct uapi_chip {
	char name[UAPI_NAME], label[UAPI_NAME];
	uint32_t lines;
};

/* Version 1. */
struct uapi_line1 {
	uint32_t line, flags;
	char name[UAPI_NAME], consumer[UAPI_NAME];
};

enum { UAPI1_USED = 1, UAPI1_IS_OUT = 2 };

struct uapi_request1 {
	uint32_t lines[UAPI_LINES], flags;
	uint8_t levels[UAPI_LINES];
	char consumer[UAPI_NAME];
	uint32_t n;
	int32_t fd;
};

struct uapi_edges1 {
	uint32_t line, flags, edges;
	char consumer[UAPI_NAME];
	int32_t fd;
};

enum { UAPI1_INPUT = 1, UAPI1_OUTPUT = 2 };

struct uapi_levels1 {
	uint8_t levels[UAPI_LINES];
};

struct uapi_event1 {
	uint64_t time_ns; /* of CLOCK_MONOTONIC since Linux 5.7, of CLOCK_REALTIME before */
	uint32_t id;
};

enum { UAPI_EVENT_RISING = 1 };

/* Version 2. 64-bit members are aligned to 8 bytes on every machine. */
typedef uint64_t __attribute__((aligned(8))) uapi_u64;

struct uapi_attribute2 {
	uint32_t id, unused;
	uapi_u64 value, lines;
};

enum { UAPI2_ATTRIBUTE_LEVELS = 2 };

struct uapi_config2 {
	uapi_u64 flags;
	uint32_t n, unused[5];
	struct uapi_attribute2 attributes[UAPI_ATTRIBUTES];
};

struct uapi_request2 {
	uint32_t lines[UAPI_LINES];
	char consumer[UAPI_NAME];
	struct uapi_config2 config;
	uint32_t n, events, unused[5];
	int32_t fd;
};

struct uapi_line2 {
	char name[UAPI_NAME], consumer[UAPI_NAME];
	uint32_t line, n;
	uapi_u64 flags;
	struct {
		uint32_t id, unused;
		uapi_u64 value;
	} attributes[UAPI_ATTRIBUTES];
	uint32_t unused[4];
};

enum { UAPI2_USED = 1, UAPI2_INPUT = 4, UAPI2_OUTPUT = 8, UAPI2_EDGES_SHIFT = 4 };

struct uapi_levels2 {
	uapi_u64 levels, lines;
};

struct uapi_event2 {
	uapi_u64 time_ns; /* of CLOCK_MONOTONIC */
	uint32_t id, line, number, number_of_line, unused[6];
};

#define UAPI_CHIP _IOR(0xb4, 0x01, struct uapi_chip)
#define UAPI1_LINE _IOWR(0xb4, 0x02, struct uapi_line1)
#define UAPI1_REQUEST _IOWR(0xb4, 0x03, struct uapi_request1)
#define UAPI1_EDGES _IOWR(0xb4, 0x04, struct uapi_edges1)
#define UAPI1_GET _IOWR(0xb4, 0x08, struct uapi_levels1)
#define UAPI1_SET _IOWR(0xb4, 0x09, struct uapi_levels1)
#define UAPI2_LINE _IOWR(0xb4, 0x05, struct uapi_line2)
#define UAPI2_REQUEST _IOWR(0xb4, 0x07, struct uapi_request2)
#define UAPI2_GET _IOWR(0xb4, 0x0e, struct uapi_levels2)
#define UAPI2_SET _IOWR(0xb4, 0x0f, struct uapi_levels2)

#endif
