# SPDX-License-Identifier: Apache-2.0
"""The option by which a target is asked to bring the record while it is measured."""

STREAM = "stream"
USUAL_BUFFER = "8MiB"
"""How much may wait on the board. At 1 kHz a thread has 2 kB of samples a second: 20 minutes for two threads."""
