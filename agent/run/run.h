/* SPDX-License-Identifier: Apache-2.0 */
/* One run from beginning to end. run.c has the order of things. */
#ifndef RTPROOF_RUN_H
#define RTPROOF_RUN_H

#include "measure/config.h"

/* Measures and writes the record. 0, or a negative errno with the reason as a sentence in why. */
int run_measure(struct config *config, char *why, size_t room);

#endif
