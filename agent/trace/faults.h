/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of our own where page faults begin and end, which the kernel has not: probes of the function that handles them. Where a
 * tracepoint tells the begin, as on x86, only the end is one.
 */
#ifndef RTPROOF_FAULTS_H
#define RTPROOF_FAULTS_H

#include "system/undo.h"

#include <stdbool.h>

enum { FAULTS_PATTERN = 64 };

/*
 * Defines them, which are there but once: so before an instance is made. False where the kernel takes no kprobes: then there is
 * nothing to choose.
 */
bool faults_define(struct undo *undo, const char *root);

/* The pattern of these events among the kernel's. */
void faults_pattern(char pattern[FAULTS_PATTERN]);

/* Whether an event, as a folder, is one of them. */
bool faults_have(const char *folder);

#endif
