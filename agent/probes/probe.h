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
#include <stddef.h>
#include <stdint.h>

struct worker;
struct cpus;

enum { FIELDS_MOST = 4, PROBE_OPTIONS = 24, PROBE_FILES = 4 };

struct method {
	const char *name, *help;
	bool on_grid;     /* due times are first + k * period; else each is relative to the last wake-up */
	bool external;    /* off the grid: the activation says when it was due */
	bool from_outside; /* external, and what gives the due times may pause: nothing is late then. The desk reads it from the source */
	bool exact;       /* external, and its due times have to be told to the nanosecond, however often that is */
	bool keeps_period; /* external, but at the period that was asked for: the end of so many samples is known */
	bool loop;        /* told by the lengths of its cycles, from one run of the loop to the next */
	bool works;       /* its thread works in each period, and may sleep in that */
	bool single;      /* can serve one thread of a process only */
	bool in_us;       /* counts in microseconds, so the period must be a whole number of them */
	bool no_deadline; /* what it measures can't have the policy deadline */
	bool collects;    /* the measuring thread only collects how late an interrupt or another thread was */
	bool no_timer;    /* no timer of the measuring thread is in what it measures: its timer slack means nothing */
	const char *const *fields; /* ends with NULL, the deepest stage last; absent: the probe's one field */
	const char *(*unsupported)(void); /* why it can't run here, or NULL; may be absent */
	const struct method *(*choose)(void); /* takes the place of this one by what is there; may be absent */
};

/* One activation. Due times are of CLOCK_MONOTONIC. */
struct activation {
	int64_t due_ns;
	int64_t values[FIELDS_MOST]; /* of each field, from the due time */
	uint32_t lost;   /* due times directly before this one whose fate is unknown: they may have run */
	uint32_t missed; /* due times directly after this one that had no activation */
};

/* --probe NAME:key=value,...: values are text, which check() looks at. */
struct probe_option {
	const char *name, *help;
};

/* What the probe's source said about itself at the end: kept in the record as a file. */
struct probe_file {
	char path[64];
	char *content; /* from malloc() */
	size_t length;
};

struct probe {
	const char *name, *help, *field, *unit;
	const char *proxy_of; /* what it stands for, where it is not the real thing, and in what it differs; may be absent */
	bool ends_with_sleep; /* an activation ends as the thread returns from its sleep */
	const struct method *const *methods; /* the first is the default; ends with NULL */
	const struct probe_option *options;  /* ends with a NULL name; may be absent */
	/* Whether the values (NULL: not given), in the order of the options, make sense: 0, or -EINVAL with a sentence. May be absent. */
	int (*check)(const struct method *method, const char *const *values, int64_t period_ns, char *why, size_t room);
	/* The same once the CPUs are known. usable: those of this process and those to measure. May be absent. */
	int (*check_cpus)(const char *const *values, const struct cpus *usable, char *why, size_t room);
	/* The method that takes the place of this one with these values, once they make sense. May be absent. */
	const struct method *(*adapt)(const struct method *method, const char *const *values);
	/* 0 or -errno, and then maybe a sentence in worker->why. The first activation is due at first_due_ns. */
	int (*open)(struct worker *worker, const struct method *method, int64_t first_due_ns, int64_t period_ns);
	/* Waits for one activation. 0, -EINTR when a signal came first, or another -errno, which ends the run. */
	int (*take)(struct worker *worker, struct activation *activation);
	/*
	 * Asked once the thread shall stop: whether take() still has an activation, which it then gives without waiting. A probe
	 * that collects what others measured brings in its harvest so, and can be told from one that got nothing. May be absent.
	 */
	bool (*pending)(struct worker *worker);
	void (*close)(struct worker *worker);
};

extern const struct probe *const probes[]; /* ends with NULL; made from the folder listing */

const struct probe *probe_find(const char *name);
const struct method *probe_method(const struct probe *probe, const char *name);

/* How many values an activation has, and what they are called. */
int method_fields(const struct method *method);
const char *method_field(const struct probe *probe, const struct method *method, int field);

/* "gpio" or "gpio:in=3,out=2". The values point into text, which is cut up. 0, or -EINVAL with a sentence in why. */
int probe_parse(char *text, const struct probe **probe, const char **values, char *why, size_t room);

/* Why the method can't run here, or NULL. */
const char *method_unsupported(const struct method *method);

#endif
