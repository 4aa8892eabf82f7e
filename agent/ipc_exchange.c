/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "ipc_exchange.h"

const char *channel_missing(int err, const char *absent)
{
	if (err == -EPERM || err == -EACCES)
		return "this process may not use the system calls that it needs";
	return err == -ENOSYS ? absent : NULL;
}

void channel_close_fds(struct exchange *exchange)
{
	for (int i = 0; i < 2; i++)
		if (exchange->ids[i] >= 0)
			close(exchange->ids[i]);
}
