/* SPDX-License-Identifier: Apache-2.0 */
/* The command "rtproof-agent facts": what a system says of itself, as a record without any measurement, for an audit elsewhere. */
#ifndef RTPROOF_FACTS_COMMAND_H
#define RTPROOF_FACTS_COMMAND_H

#include <stddef.h>

/* 0, or a negative errno and why. */
int facts_main(int argc, char **argv, char *why, size_t room);

#endif
