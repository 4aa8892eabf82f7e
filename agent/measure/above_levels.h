/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a thread's last field, its whole reaction, that exceed a limit of the user or a level. The first minute of
 * the run sets the levels (docs/record-format.md, LEVEL, ABOVE and EXCEEDED). Only the writer's thread runs this code.
 */
#ifndef RTPROOF_ABOVE_LEVELS_H
#define RTPROOF_ABOVE_LEVELS_H

#include "measure/slice_summary.h"
#include "record/record.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Tells people who watch, on standard error, of the times at which a thread was above a limit. Late times less than
 * OVER_APART_NS apart are one stretch, if they begin in the same second. So there are at most 21 stretches in a second. A
 * stretch is told again when more of it are late. What decides a run live is told before the progress that covers it.
 */
#define OVER_APART_NS (NS_PER_SECOND / 20) /* rtproof.record.activations.TOLD_APART_NS */

struct over {
	int64_t second, worst_ns; /* the second in which the newest stretch begins; its largest value */
	int64_t begin_ns, end_ns; /* its first and last late time: due times, with what is due behind a late activation */
	uint64_t count, told;     /* how many activations are late in it, with those missed behind; of them told */
};

/* An activation whose value is above the limit. Seconds never go back. */
void over_add(struct over *over, int thread, int64_t limit_ns, int64_t due_ns, int64_t second, int64_t value_ns);

/* Tells what has not been told yet. */
void over_tell(struct over *over, int thread, int64_t limit_ns);

enum { ABOVE_LIMITS = 8, ABOVE_LEARNED = 2, ABOVE_LEVELS = ABOVE_LIMITS + ABOVE_LEARNED };
enum { ABOVE_LIST = 256, ABOVE_LIST_MOST = 65536 };

struct above {
	uint16_t series;
	int n_limits, n_levels, thread;
	int64_t levels[ABOVE_LEVELS]; /* first the limits, in the order given */
	int64_t lowest;               /* of them; INT64_MAX: there is none */

	/* While the first minute teaches. */
	bool learning;
	int64_t learned_at_ns;
	uint64_t taught;
	struct hist hist;

	/* Not written yet: the newest second, the seconds before it, exceedances. */
	int64_t second, last_second, first_second;
	uint64_t ran[ABOVE_LEVELS], missed[ABOVE_LEVELS];
	struct bytes seconds;
	uint32_t entries;
	struct bytes list;
	int64_t last_index, last_due_ns;
	uint32_t n_list, listed[ABOVE_LIMITS];
	uint16_t ended;

	bool tell; /* people who watch */
	struct over overs[ABOVE_LIMITS];
};

/* The limits are those of the thread whose series it is; its first activation is due at first_due_ns. */
void above_open(struct above *above, uint16_t series, const int64_t *limits_ns, int n_limits, int64_t first_due_ns);
void above_close(struct above *above);

/* Writes what the limits are, before anything that is above them. */
void above_announce(const struct above *above, struct record *record, int64_t first_due_ns);

/* An activation that ran, and the second of its due time; seconds never go back. */
void above_ran(struct above *above, struct record *record, uint64_t index, int64_t due_ns, int64_t second, int64_t value);

/* One that was missed, with its lateness. */
void above_missed(struct above *above, struct record *record, int64_t second, int64_t late);

/* Writes what is pending: part of a checkpoint. */
void above_flush(struct above *above, struct record *record);

/* Tells those who watch, before the progress of the thread is printed. */
void above_tell(struct above *above);

#endif
