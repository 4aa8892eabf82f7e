/* SPDX-License-Identifier: Apache-2.0 */
/* Of the agent, and of the record that it writes (docs/record-format.md). */
#ifndef RTPROOF_VERSION_H
#define RTPROOF_VERSION_H

#define AGENT_VERSION "0.1.0"

enum { RECORD_MAJOR = 1, RECORD_MINOR = 3 };

#endif
