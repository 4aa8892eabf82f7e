/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a run in the background for a host: sends what the agent prints and, once it is asked, the record. Both come from
 * files, so a host that was away asks again from where it was.
 *
 * Frames (frames.h): S how the run stands, at the begin, every few seconds and at the end; L the log; R the record.
 * Lines that the host sends: "alive"; "record OFFSET": send the record from there on, as far as it is written;
 * "again TYPE OFFSET LENGTH"; "signal NAME"; "done". A host that sends nothing for long is gone, and so the follower ends.
 * "have RECORD LOG": the host has so many bytes of both files safely. They are freed here, and from then on S says so
 * (record/delivery.h). Of what is freed nothing is sent again.
 */
#ifndef RTPROOF_FOLLOW_H
#define RTPROOF_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * host: its name; one host may follow a run at a time, and takes over from itself. log_from: what it has of the log.
 * 0 when the host is done or gone; a negative errno and why.
 */
int follow(const char *folder, const char *host, int64_t log_from, bool as_text, char *why, size_t room);

#endif
