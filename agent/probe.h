/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe is one way to take one sample: a file in probes/ that defines probe_NAME. The table of them is made from the
 * folder listing. A probe with methods serves several ways to wait for the same kind of event.
 *
 * take() is the measured loop's body: no allocation, no lock, no system call but those being measured. Whatever it needs is made
 * in open(), which runs in the measuring thread under its policy and affinity.
 */
#ifndef RTPROOF_PROBE_H
#define RTPROOF_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

struct method {
	const char *name, *help;
	bool on_grid;     /* due times are first + k * period; else each is relative to the last wake-up */
	bool single;      /* can serve one thread of a process only */
	bool in_us;       /* counts in microseconds, so the period must be a whole number of them */
	const char *(*unsupported)(void); /* why it can't run here, or NULL; may be absent */
};

/* One activation. Due times are of CLOCK_MONOTONIC. */
struct activation {
	int64_t due_ns, latency_ns;
	uint32_t missed; /* due times directly after this one that had no activation */
};

struct probe {
	const char *name, *help, *field, *unit;
	const struct method *const *methods; /* the first is the default; ends with NULL */
	/* 0 or -errno. The first activation is due at first_due_ns. */
	int (*open)(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns);
	/* Waits for one activation. 0, -EINTR when a signal came first, or another -errno, which ends the run. */
	int (*take)(struct worker *worker, struct activation *activation);
	void (*close)(struct worker *worker);
};

extern const struct probe *const probes[]; /* ends with NULL; made from the folder listing */

const struct probe *probe_find(const char *name);
const struct method *probe_method(const struct probe *probe, const char *name);

/* Why the method can't run here, or NULL. */
const char *method_unsupported(const struct method *method);

#endif
