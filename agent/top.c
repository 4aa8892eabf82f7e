/* SPDX-License-Identifier: Apache-2.0 */
#include "top.h"

#include "packed.h"

static void sink(struct top *top, struct top_entry entry)
{
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < top->n && top->entries[child + 1].value < top->entries[child].value)
			child++;
		if (child >= top->n || top->entries[child].value >= entry.value)
			break;
		top->entries[at] = top->entries[child];
		at = child;
	}
	top->entries[at] = entry;
}

void top_add(struct top *top, uint64_t index, int64_t due_ns, int64_t value)
{
	struct top_entry entry = { index, due_ns, value, true };

	if (top->n == TOP_K) {
		/* Equal values: the earlier one stays. */
		if (value > top->entries[0].value)
			sink(top, entry);
		return;
	}
	uint32_t at = top->n++;

	for (; at > 0 && top->entries[(at - 1) / 2].value > value; at = (at - 1) / 2)
		top->entries[at] = top->entries[(at - 1) / 2];
	top->entries[at] = entry;
}

bool top_is_fresh(const struct top *top)
{
	for (uint32_t i = 0; i < top->n; i++)
		if (top->entries[i].fresh)
			return true;
	return false;
}

bool put_top(struct bytes *bytes, struct top *top)
{
	int64_t columns[3][TOP_K];
	uint32_t n = 0;

	for (uint32_t i = 0; i < top->n; i++) {
		struct top_entry *entry = &top->entries[i];

		if (!entry->fresh)
			continue;
		entry->fresh = false;
		columns[0][n] = (int64_t)entry->index;
		columns[1][n] = entry->due_ns;
		columns[2][n++] = entry->value;
	}
	for (int column = 0; n && column < 3; column++)
		put_packed(bytes, columns[column], n);
	return n > 0;
}
