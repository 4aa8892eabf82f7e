/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/probes.h"

#include "collect/kernel_log.h"
#include "collect/permissions.h"

const struct audit_probe audit_probes[] = {
	{ "rt-permitted", "whether a thread may have SCHED_FIFO: yes, or the error", collect_rt_permitted, false, false },
	{ "log-messages", "how many messages the kernel has logged", collect_log_messages, true, false },
	{ 0, 0, 0, false, false },
};
