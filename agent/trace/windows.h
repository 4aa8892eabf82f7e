/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest pages of each CPU, and the windows of those that an activation needs (docs/record-format.md, SNAPSHOT). Nothing here
 * reads the kernel's buffers or knows of threads, and after windows_open() nothing allocates: memory stays as it is.
 */
#ifndef RTPROOF_WINDOWS_H
#define RTPROOF_WINDOWS_H

#include "trace/pages.h"
#include "trace/pieces.h"

#include <stdbool.h>
#include <stdint.h>

enum { WINDOWS_MOST = 1024, WINDOWS_WAITING = 256, WINDOW_PAGES = 256 };

#define WINDOW_BEFORE_NS 10000000 /* at most */
#define WINDOW_AFTER_NS 1000000
#define WINDOW_OTHERS_BEFORE_NS 1000000 /* a due time, on other CPUs than that of a thread that is bound to one */

enum window_reason { WINDOW_THRESHOLD, WINDOW_TOP, WINDOW_ORDINARY };

/* Why an activation above the threshold has no window. */
enum window_loss {
	LOST_BEFORE, /* it would begin before the trace */
	LOST_QUEUE,  /* too many waited for their pages */
	LOST_MEMORY, /* the memory was full of later ones */
	LOST_RECORD, /* so was the room in the record */
	LOSSES
};

/* What is to be kept: set from outside before windows_open(). */
struct windows_plan {
	int cpus;
	int lane_pages; /* the newest of each CPU */
	int held_pages; /* those that windows have besides */
	int top, ordinary; /* windows of these reasons, at most */
	bool own_cpu_only; /* of a thread that is bound to a CPU; else all CPUs' pages */
};

/* An activation and the time of its window, on CLOCK_MONOTONIC. */
struct wanted {
	uint16_t series;
	int cpu; /* that its thread is bound to; -1: none */
	uint64_t index;
	int64_t due_ns, value; /* as in the record */
	int64_t from_ns, to_ns;
	int64_t others_from_ns; /* if later than from_ns: the same for CPUs that its thread never uses */
	enum window_reason reason;
	int place; /* ordinary: which one of them it is */
};

/* The pages of a CPU that belong to a window: the first slot, and those that follow it. */
struct window_lane {
	uint32_t first;
	uint16_t pages;
	bool asked, whole;
};

struct window {
	bool used, taken; /* taken: it is about to be in the record, and is not given up any more */
	struct wanted of;
	struct window_lane *lanes; /* one for each CPU */
};

/* A page in memory. */
struct slot {
	int64_t begins_ns;
	uint64_t stamp;
	uint32_t next; /* the page of the same CPU that was read after it */
	uint16_t cpu, users;
	bool lost, newest; /* lost: events before it are; newest: it is among the newest of its CPU */
	struct page_pieces pieces; /* that are in the record */
};

/* The newest pages of a CPU, a ring. */
struct lane {
	uint32_t *slots;
	int first, n;
	bool forgot;          /* there were older ones */
	int64_t read_to_ns;   /* every event before is in these pages, or was lost */
};

struct windows {
	struct windows_plan plan;
	struct page_layout layout;
	uint8_t *bytes; /* of all slots */
	struct slot *slots;
	uint32_t n_slots, spare; /* spare: the slot to be filled next */
	uint32_t *free;
	uint32_t n_free, held;
	struct lane *lanes;
	struct window *windows;
	int n_windows; /* how many there may be */
	int most_pages; /* of a window, of a CPU */
	struct window_lane *all_lanes;
	struct wanted waiting[WINDOWS_WAITING];
	int n_waiting;
	int tops;                /* windows of reason top */
	int64_t floor, top_floor; /* what is not above it finds no room: any late window, or one of reason top */
	uint64_t seen;           /* activations from which the ordinary ones are drawn */
	uint64_t random;
	uint64_t above, pages_read; /* activations above the threshold */
	uint64_t lost[LOSSES];      /* of them; the others are in the record, or will be */
	int64_t began_ns;           /* the trace did; windows before would have no events */
};

/* 0 or -ENOMEM. */
int windows_open(struct windows *windows, const struct windows_plan *plan, const struct page_layout *layout, uint64_t seed);
void windows_close(struct windows *windows);

/* From when on a window has the events of a CPU. */
int64_t wanted_from_ns(const struct wanted *of, int cpu);

/* Bytes that a plan needs. */
int64_t windows_space(const struct windows_plan *plan, const struct page_layout *layout);

/* Where the next page is to be read, and that it has been read: it began then. */
uint8_t *windows_room(struct windows *windows);
void windows_add(struct windows *windows, int cpu, int64_t begins_ns);

/* Nothing older than this comes from a CPU any more. */
void windows_read_to(struct windows *windows, int cpu, int64_t time_ns);

/* Decides whether an activation gets a window, and remembers it until its pages are there. reason and place are filled in. */
void windows_offer(struct windows *windows, const struct wanted *wanted, int64_t threshold);

/* Gives pages to those that wait and whose pages have been read; in the end to all. */
void windows_claim(struct windows *windows, bool end);

/* The window with the largest value of those with this reason that are not taken; NULL: there is none. */
struct window *windows_largest(const struct windows *windows, enum window_reason reason);

/* Whether the longest window there may be finds room beside those that there are. */
bool windows_fits_one_more(const struct windows *windows);

/* It and its pages stay as they are until windows_written(). */
void windows_take(struct window *window);
uint64_t windows_count(const struct windows *windows, enum window_reason reason);
const uint8_t *windows_page(const struct windows *windows, uint32_t slot);

/* A window and its pages are in the record: its memory is free for others. */
void windows_written(struct windows *windows, struct window *window);

#endif
