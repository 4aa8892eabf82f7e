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
	bool empty;
	bool lost; /* events between the page read before and this one are lost */
};

/* From the text of the file events/header_page. 0, or -EINVAL if it has another form. */
int page_layout_parse(const char *text, struct page_layout *layout);

struct page_head page_head(const struct page_layout *layout, const uint8_t *page);

#endif
