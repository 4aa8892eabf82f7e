# SPDX-License-Identifier: Apache-2.0
"""What this machine lacks for which feature of rtproof, and the command that brings it: ``rtproof doctor``."""
