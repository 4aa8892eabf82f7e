/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: a thread of normal priority that moves samples from the rings into the record. It stays away from the measured
 * CPUs where other CPUs are allowed.
 */
#ifndef RTPROOF_WRITER_H
#define RTPROOF_WRITER_H

#include "facts/facts.h"
#include "measure/shared.h"
#include "run/streaming.h"
#include "trace/recorder.h"

struct writer {
	struct run *run;
	struct facts *facts;
	struct recorder *recorder;
	pthread_t thread;
	uint32_t stop; /* a word that is read and written whole */
	struct streaming streaming;
	int64_t checkpoints, slice_began; /* written, and written before the slice that has not ended */
};

/* 0 or -errno. */
int writer_start(struct writer *writer, struct run *run, struct facts *facts, struct recorder *recorder);

/* Takes what is left in the rings, writes the last checkpoint, ends the thread. */
void writer_finish(struct writer *writer);

#endif
