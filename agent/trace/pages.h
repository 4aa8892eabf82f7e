/* SPDX-License-Identifier: Apache-2.0 */
/* How a page of the kernel's trace is laid out, and what its head says. */
#ifndef RTPROOF_TRACE_PAGES_H
#define RTPROOF_TRACE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In bytes. The time stamp is the first eight. */
struct page_layout {
	int size, commit, commit_size, data;
};

struct page_head {
	uint64_t stamp; /* by the trace's clock: when its first event began to count */
	uint32_t length; /* of its entries, in bytes */
	bool empty;
	bool lost; /* events between the page read before and this one are lost */
};

/* From the text of the file events/header_page. 0, or -EINVAL if it has another form. */
int page_layout_parse(const char *text, struct page_layout *layout);

/* Types of entries; a smaller one is an event. Padding with a delta is an event that was taken back. */
enum { ENTRY_PADDING = 29, ENTRY_TIME_EXTEND = 30, ENTRY_TIME_STAMP = 31 };

/* One entry: an event, or what moves the time. */
struct page_entry {
	uint32_t length; /* in bytes, with its head of four; 0: there is none any more, or none that can be read */
	uint32_t type, delta;
	uint64_t time; /* from then on */
};

/* Between two entries, by bytes behind the page's head; the time from which the next one counts. */
struct page_place {
	uint32_t at;
	uint64_t stamp;
};

struct page_cut {
	struct page_place from, to;
};

struct page_head page_head(const struct page_layout *layout, const uint8_t *page);

/* What stands at a place, with so many bytes up to the end of the events, if time is the one before it. */
struct page_entry page_entry(const uint8_t *at, size_t left, uint64_t time);

/*
 * The entries of a page from the last one before a time to the first one behind another, or a few more: no two places at which a
 * page is cut have the same stamp.
 */
void page_cut(const struct page_layout *layout, const uint8_t *page, uint64_t from, uint64_t to, struct page_cut *cut);

#endif
