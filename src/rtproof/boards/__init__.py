# SPDX-License-Identifier: Apache-2.0
"""Boards: machines that are reached through a shell, however that is reached.

A ``Shell`` runs command lines there. All else builds on that: the upload of the agent, and runs in the background that
outlive the connection. The targets ``ssh``, ``command``, ``serial`` and ``labgrid`` are shells with options.
"""

STREAM = "stream"
"""The option by which a target is asked to bring the record while it is measured."""
ADDED = "rtproof_tune.added"
"""A word of the kernel's command line, before those that a tuning added."""
USUAL_BUFFER = "8MiB"
"""How much may wait on the board. At 1 kHz a thread has 2 kB of samples a second: 20 minutes for two threads."""
