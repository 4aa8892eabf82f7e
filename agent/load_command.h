/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command "rtproof-agent load" runs loads and measures nothing. It serves the other end of a network, and lets a user
 * try a load.
 */
#ifndef RTPROOF_LOAD_COMMAND_H
#define RTPROOF_LOAD_COMMAND_H

#include <stddef.h>

/* Until it is time, or asked to end. Prints the work done each second. 0, or a negative errno and why. */
int loading_main(int argc, char **argv, char *why, size_t room);

#endif
