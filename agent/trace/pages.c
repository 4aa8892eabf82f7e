/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/pages.h"

#include <stdio.h>
#include <string.h>

enum { PAGE_MOST = 1 << 26, LENGTH_BITS = 27 };
#define EVENTS_LOST (1u << 31)

/* "field: local_t commit;	offset:8;	size:8;	signed:1;" */
static int parse_field(const char *text, const char *name, int *offset, int *size)
{
	const char *field = strstr(text, name);

	return field && sscanf(field + strlen(name), " offset:%d; size:%d;", offset, size) == 2 ? 0 : -EINVAL;
}

int page_layout_parse(const char *text, struct page_layout *layout)
{
	int size;
	int err = parse_field(text, " commit;", &layout->commit, &layout->commit_size);

	if (!err)
		err = parse_field(text, " data;", &layout->data, &size);
	if (err || layout->data < 8 || size < 0 || size > PAGE_MOST)
		return -EINVAL;
	if ((layout->commit_size != 4 && layout->commit_size != 8) || layout->commit < 8 || layout->commit + layout->commit_size > layout->data)
		return -EINVAL;
	layout->size = layout->data + size;
	return 0;
}

struct page_head page_head(const struct page_layout *layout, const uint8_t *page)
{
	struct page_head head;
	uint64_t commit = 0;
	uint32_t low;

	memcpy(&head.stamp, page, sizeof(head.stamp));
	if (layout->commit_size == 8) {
		memcpy(&commit, page + layout->commit, 8);
		low = (uint32_t)commit;
	} else {
		memcpy(&low, page + layout->commit, 4);
	}
	head.empty = !(low & ((1u << LENGTH_BITS) - 1));
	head.lost = low & EVENTS_LOST;
	return head;
}
