/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two marks between which an activation of an application lies. A mark is "marker:TEXT", which the application writes into
 * trace_marker; "uprobe:FILE:OFFSET" or "uretprobe:FILE:OFFSET", when it reaches or leaves a function at this place in the file, with
 * a name for people behind a space; or "event:SYSTEM/NAME[:FILTER]". The desk finds the marks in the trace.
 */
#ifndef RTPROOF_MARKS_H
#define RTPROOF_MARKS_H

#include "system/undo.h"

#include <stdbool.h>
#include <stddef.h>

enum { MARKS = 2, MARK_EVENT = 96 };

/* A mark's event as "SYSTEM:NAME"; empty for one that is written into trace_marker. What follows it is no part of the kernel's name. */
void marks_event(const char *const marks[MARKS], int which, char event[MARK_EVENT]);

/* The filter of a mark's event; NULL if it has none. */
const char *marks_filter(const char *mark);

/* Whether the application writes one of them. */
bool marks_are_written(const char *const marks[MARKS]);

/* 0, or -EINVAL with the reason as a sentence in why. */
int marks_check(const char *const marks[MARKS], bool traced, char *why, size_t room);

/* Defines the uprobes, which are there but once: so before an instance is made, or they could not go before it. The same answers. */
int marks_define(struct undo *undo, const char *root, const char *const marks[MARKS], char *why, size_t room);

#endif
