/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what an audit judges, within bounds, and sends it entry by entry. What a bound leaves out is sent as such. */
#ifndef RTPROOF_READER_H
#define RTPROOF_READER_H

#include "collect/paths.h"
#include "collect/probes.h"
#include "record/record.h"

enum { PATH_ROOM = 512, ENTRIES_MOST = 16384, FACTS_MOST = 8 * 1024 * 1024, OF_RUN_MOST = 1024 * 1024 };

/* What to read. more, without: NULL, or a table of what is read too, or not read. patience_ms: a read that takes longer hangs. */
struct collect_plan {
	const struct audit_path *paths, *more, *without;
	const struct audit_probe *probes;
	int patience_ms;
	size_t most; /* bytes that the record may need for it, about */
};

enum audit_entry_kind {
	ENTRY_CONTENT,
	ENTRY_ANNOUNCED, /* this is read next, so that the collector can name what hangs */
	ENTRY_LEFT_OUT,  /* path: what; content: why */
	ENTRY_DONE,      /* nothing comes any more */
};

/* A head in the machine's own order of bytes; then the path and the content, of so many bytes. */
struct audit_entry {
	uint8_t kind, moment, cut;
	uint16_t path;
	int32_t err;
	uint32_t content;
};

struct reader {
	const struct collect_plan *plan;
	enum moment moment;
	int pid; /* also read this process; 0: none */
	void (*send)(struct reader *reader, const struct audit_entry *head, const char *path, const void *content);
	void *to; /* for send */
	int pipe; /* for send of a process that only reads */

	int entries, fits; /* fits: files that fit the present pattern */
	size_t total;
	bool full;
	uint64_t *seen; /* a set of what was read, so that nothing is read twice */
	char *buffer;
};

/* Both memories of the reader. 0 or -ENOMEM; reader_close() is due in both cases. */
int reader_open(struct reader *reader);
void reader_close(struct reader *reader);

/* That an earlier reader has read this, so many bytes. */
void reader_skip(struct reader *reader, const char *path, size_t length);

void reader_read(struct reader *reader);

#endif
