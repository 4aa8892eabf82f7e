/* SPDX-License-Identifier: Apache-2.0 */
/* A program of the system as a load. The keeper starts the program without a shell, counts its work and enforces its limits. */
#ifndef RTPROOF_PROGRAM_H
#define RTPROOF_PROGRAM_H

#include "loads/common/running.h"

enum { PROGRAM_AGAIN, PROGRAM_COUNT, PROGRAM_MEMORY, PROGRAM_PROCESSES, PROGRAM_REST, PROGRAM_SPACE, PROGRAM_NEEDS };
enum program_count { COUNT_RUNS, COUNT_CPU_MS, COUNT_LINES, COUNT_BYTES };

extern const struct load load_program;

/*
 * "NAME:key=value,... COMMAND", where COMMAND is words with quotes ('', "" and \) as a shell has them. 0, or -EINVAL with the
 * reason as a sentence in why.
 */
int program_parse(const char *text, struct running_load *running, char *why, size_t room);

#endif
