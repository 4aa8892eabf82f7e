/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/common/stimulus.h"

void stimulus_give(struct stimulus *stimulus, int64_t now_ns)
{
	int64_t late_ns = now_ns - stimulus->due_ns;

	stimulus->skipped = late_ns < stimulus->period_ns ? 0 : (uint32_t)(late_ns / stimulus->period_ns);
	stimulus->due_ns += stimulus->skipped * stimulus->period_ns;
	stimulus->given_ns = now_ns;
	stimulus->given++;
}

bool stimulus_takes(struct stimulus *stimulus, int64_t edge_ns, bool level)
{
	bool before = edge_ns && edge_ns < stimulus->given_ns;
	bool wrong = stimulus->both && level != stimulus->level;

	stimulus->strays += before || wrong;
	return !before && !wrong;
}

/*
 * After an edge that had no answer the same one is tried again, from the level before it: if the other side sleeps, a change is
 * still to be seen for it.
 */
void stimulus_end(struct stimulus *stimulus, int64_t value_ns, bool answered, struct activation *activation)
{
	activation->due_ns = stimulus->due_ns;
	activation->lost = stimulus->skipped;
	activation->missed = (uint32_t)(value_ns / stimulus->period_ns);
	stimulus->due_ns += (1 + (int64_t)activation->missed) * stimulus->period_ns;
	stimulus->given_ns = 0;
	stimulus->answered += answered;
	stimulus->unanswered += !answered;
	if (stimulus->both && answered)
		stimulus->level = !stimulus->level;
}
