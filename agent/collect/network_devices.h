/* SPDX-License-Identifier: Apache-2.0 */
/* How the network devices that are up interrupt the CPUs. */
#ifndef RTPROOF_NETWORK_DEVICES_H
#define RTPROOF_NETWORK_DEVICES_H

#include "record/bytes.h"

/*
 * A line for each device but lo: NAME driver=.. rx-usecs=.. tx-usecs=.. adaptive-rx=0|1 eee=0|1 channels=.. threaded=.. What a device
 * does not tell is left out, and one that sleeps has only asleep=1, because a question would wake it.
 */
int collect_network_devices(struct bytes *text, int pid);

#endif
