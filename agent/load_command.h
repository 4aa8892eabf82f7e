/* SPDX-License-Identifier: Apache-2.0 */
/* "rtproof-agent load": loads and no measuring, for the other end of a network, and to try one out. */
#ifndef RTPROOF_LOAD_COMMAND_H
#define RTPROOF_LOAD_COMMAND_H

#include <stddef.h>

/* Until it is time, or asked to end. Prints the work done each second. 0, or a negative errno and why. */
int loading_main(int argc, char **argv, char *why, size_t room);

#endif
