/* SPDX-License-Identifier: Apache-2.0 */
/* The options of "rtproof-agent run", "load" and "try". Parsing and `help` follow one table. */
#ifndef RTPROOF_OPTIONS_H
#define RTPROOF_OPTIONS_H

#include "measure/config.h"

#include <stdio.h>

/* 0, or -EINVAL with the reason as a sentence in why. Looks at the machine: CPUs, and what its kernel can do. */
int parse_config(int argc, char **argv, struct config *config, char *why, size_t room);

/* The same of "rtproof-agent load": loads, how long, and whether to end with standard input. */
int parse_loads(int argc, char **argv, struct config *config, char *why, size_t room);

/* The same of "rtproof-agent try": settings. */
int parse_settings(int argc, char **argv, struct config *config, char *why, size_t room);

/* A line for each option of "run". */
void options_print(FILE *file);

#endif
