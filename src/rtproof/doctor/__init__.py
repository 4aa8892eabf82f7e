# SPDX-License-Identifier: Apache-2.0
"""What this machine lacks for which feature of rtproof, and the command that brings it: ``rtproof doctor``.

``checks/`` holds the checks, one file each. ``host`` tells them of the machine, ``remedies`` writes commands for it,
and ``examination`` runs each check in a process of its own, so that one that fails or hangs does not affect the others.
"""
