/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MAIL_H
#define MAIL_H

#include <stddef.h>
#include <stdint.h>

/* The memory that guest and host share; src/rtproof/vm/mailbox.py is its other end. All numbers are little-endian.
 * The header takes the first page, the job follows on the next, the guest's frames on the page after the job. */
#define MAIL_MAGIC 0x6d707472u
#define MAIL_PAGE 4096u

enum mail_state { MAIL_NOTHING, MAIL_ALIVE, MAIL_READY, MAIL_RUNNING, MAIL_DONE };

struct mail_header {
	uint32_t magic;      /* of the host: MAIL_MAGIC */
	uint32_t stop;       /* of the host: whether the machine shall stop when it is ready */
	uint32_t job_length; /* of the host: bytes; 0 until there is a job */
	uint32_t state;      /* of the guest: enum mail_state */
	uint32_t written;    /* of the guest: bytes of whole frames */
};

enum mail_kind {
	MAIL_SAID = 1,   /* what the job wrote on its standard output and error */
	MAIL_ENDED,      /* the job's end: int32 exit code, uint32 bytes that it said and for which there was no room,
	                    uint64 CLOCK_MONOTONIC at its start and at its end, in ns */
	MAIL_RESULT,     /* a piece of the archive of results */
	MAIL_RESULT_END, /* uint32 bytes of the archive, uint32 their CRC-32 */
	MAIL_FAILED,     /* a sentence: why there is no result */
};

struct mail {
	volatile struct mail_header *header;
	volatile uint32_t *area;
	size_t size;
};

/* 0 if there is no shared memory or it is not ours; a sentence on stderr says why. */
int mail_open(struct mail *mail);

void mail_set_state(struct mail *mail, enum mail_state state);

/* Bytes that a frame may still have, when `reserve` bytes are to stay free for later frames. */
size_t mail_room(const struct mail *mail, size_t reserve);

/* Append a frame. 0, and nothing appended, if it has no room. */
int mail_post(struct mail *mail, enum mail_kind kind, const void *payload, size_t length);

/* Wait until the host has given a job, then write it to a file descriptor. 0 if that cannot be written. */
int mail_take(const struct mail *mail, int fd);

#endif
