# SPDX-License-Identifier: Apache-2.0
"""A run on a target: the agent's process, the lines that the agent prints, and the live view."""
