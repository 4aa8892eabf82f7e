/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evidence: what was asked and what really happened, read back and written into the record as facts, files and counters.
 * Nothing here judges. Called by whichever thread owns the record at the time.
 */
#ifndef RTPROOF_FACTS_H
#define RTPROOF_FACTS_H

struct run;

/* Opens what will be read during the run: counters, kernel messages. */
void facts_open(struct run *run);
void facts_close(struct run *run);

/* BEGIN, SERIES, COUNTER and everything known before the first sample. */
void facts_at_start(struct run *run);

/* Counters, kernel messages, and whether the threads still are what they should be. */
void facts_each_second(struct run *run);
void facts_of_writer(struct run *run);

/* What the threads read about themselves, and the system once more. */
void facts_at_end(struct run *run);

/* END with the totals. */
void facts_finish(struct run *run);

/* Whether memory could be locked: 0 or -errno. */
void fact_of_memory(struct run *run, int err);

#endif
