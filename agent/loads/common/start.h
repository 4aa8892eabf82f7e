/* SPDX-License-Identifier: Apache-2.0 */
/* Starts loads, watches whether they still run, and stops them. */
#ifndef RTPROOF_START_H
#define RTPROOF_START_H

#include "loads/common/running.h"

/* Fills in what was not given, counts the workers, and asks the load whether it can run here. 0, or a negative errno and why. */
int load_prepare(struct running_load *running, char *why, size_t room);

/*
 * 0 or a negative errno and why, such as -ENOMEM or -ENOSPC if the machine has not the room to spare. A load that fails later
 * ends, with the errno as its exit code.
 */
int load_start(struct running_load *running, char *why, size_t room);

/* Whether a load has ended by itself; then what is left of it is ended too, and why says why it died. */
bool load_died(struct running_load *running, char *why, size_t room);

/* Kills the whole group and waits for it. */
void load_stop(struct running_load *running);

/*
 * Removes what agents left behind that were killed with all their processes, then starts all loads; and a moment for programs that
 * die at once. 0, or a negative errno and why: then they have to be stopped too.
 */
int loads_start(struct running_load *running, int count, char *why, size_t room);
void loads_stop(struct running_load *running, int count);

#endif
