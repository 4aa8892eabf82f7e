# SPDX-License-Identifier: Apache-2.0
"""The agent's program file: its processors, how it is built, and where it is found.

The constants are the defaults of a run's options.
"""

DURATION_DEFAULT = "20s"
"""The host always gives the agent a length, by default this one."""
PERIOD_DEFAULT = "1ms"
WARMUP_DEFAULT = "1s"
