# SPDX-License-Identifier: Apache-2.0
"""The agent's program file: for which processors it is built, how it is built, and where it is found.

The constants are what a run gets where its options do not say otherwise.
"""

DURATION_DEFAULT = "20s"
"""The host always gives the agent a length: this one."""
PERIOD_DEFAULT = "1ms"
WARMUP_DEFAULT = "1s"
