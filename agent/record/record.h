/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record file: chunks, checksums, and room kept for the end (docs/record-format.md). Only one thread at a time uses it.
 * After an error, every call returns that same error and does nothing else; what was written stays readable.
 */
#ifndef RTPROOF_RECORD_H
#define RTPROOF_RECORD_H

#include "record/bytes.h"

#include <stdbool.h>

enum chunk_type {
	CHUNK_BEGIN = 1,
	CHUNK_FACT,
	CHUNK_FILE,
	CHUNK_SERIES,
	CHUNK_SAMPLES,
	CHUNK_SUMMARY,
	CHUNK_SECONDS,
	CHUNK_TOP,
	CHUNK_COUNTER,
	CHUNK_TICK,
	CHUNK_EVENT,
	CHUNK_END,
	CHUNK_LEVEL,
	CHUNK_ABOVE,
	CHUNK_EXCEEDED,
	CHUNK_CONDITIONS,
	CHUNK_SNAPSHOT
};

enum moment { MOMENT_ASKED, MOMENT_START, MOMENT_DURING, MOMENT_END };

enum end_reason { END_AS_ASKED, END_INTERRUPTED, END_NO_SPACE, END_HOST_GONE, END_LOAD_DIED, END_GUARD, END_ERROR };

enum { WHOLE_RUN = 0xFFFF, RECORD_RESERVE = 256 * 1024, RECORD_FILE_MOST = 64 * 1024 };

struct record {
	int fd;
	bool seekable, reserving;
	uint32_t sequence;
	int64_t end, reserved_to; /* bytes; reserved_to: the file system has promised room up to there */
	int64_t reserve;          /* bytes kept for the last checkpoint and END; may be raised before the first chunk */
	int64_t before;           /* bytes in the file before the record; -1: no regular file */
	const char *unsynced_path; /* the file whose name is not on the medium yet; NULL: there is none */
	bool no_space;            /* the reserve can't be renewed: end the run, the rest fits into the reserve */
	bool was_full;            /* there was no space, and some came */
	bool limited;             /* no_space comes from the limit on the size of files */
	int64_t buffer;           /* bytes in RAM that what no host has yet may take, with the reserve; 0: there is no such limit */
	int64_t delivered;        /* bytes that a host has safely */
	bool behind;              /* so much waits for the host that samples are not kept */
	bool overrun;             /* no_space comes from this buffer */
	int error;                /* first error of a write, negative errno */
	struct bytes chunk;
};

/* "-" is standard output. A file must not exist; its path must stay as long as the record is open. 0 or -errno. */
int record_open(struct record *record, const char *path);

/* Bytes that a file may have at most (RLIMIT_FSIZE); INT64_MAX: there is no limit. */
int64_t record_size_limit(void);

/* Whether an error, a negative errno, says that there is no space. */
bool means_full(int err);

/*
 * To be called behind the last checkpoint, when somebody gives up space of the same file system: what follows is tried again, with
 * a smaller reserve, so that what comes needs no more than what goes.
 */
void record_has_room_again(struct record *record);

/* The payload goes into the returned buffer until chunk_end(). */
struct bytes *chunk_begin(struct record *record, enum chunk_type type);
int chunk_end(struct record *record);

/*
 * Instead of chunk_end(), for chunks that can be done without: true if the buffer has no room to spare for it, so that it is not
 * written. A quarter of the buffer, beside the reserve, is kept for all other chunks. Once it is so, half must be free again.
 */
bool chunk_is_dropped(struct record *record);

/* Flushes the file to the medium, and the first time also its name. 0 or -errno. */
int record_flush(struct record *record);
int record_close(struct record *record);

/* Chunks that hold text only. Values of facts are formatted as by printf. */
int record_fact(struct record *record, int64_t time_ns, int thread, enum moment moment, const char *key,
		const char *format, ...) __attribute__((format(printf, 6, 7)));
int record_event(struct record *record, int64_t time_ns, int thread, const char *kind, const char *text);

/* A file of the system, cut at 64 KiB; how reading it failed, if it did. */
int record_file(struct record *record, int64_t time_ns, enum moment moment, const char *path);

/* The same for what was had otherwise (err: 0, or -errno), under a name of ours; cut at 1 MiB. */
int record_content(struct record *record, int64_t time_ns, enum moment moment, const char *path, int err,
		   const char *content, size_t length);

/* The same, cut at most; the chunk says that something was left out. */
int record_content_at_most(struct record *record, int64_t time_ns, enum moment moment, const char *path, int err,
			   const char *content, size_t length, size_t most);

/* BEGIN: the format, a random number, the time, and the machine. origin_ns: by CLOCK_MONOTONIC, from where all times count. */
int record_begin(struct record *record, int64_t origin_ns);

/* Of the agent, and of the record that it writes (docs/record-format.md). */

#define AGENT_VERSION "0.1.0"

enum { RECORD_MAJOR = 1, RECORD_MINOR = 7 };

#endif
