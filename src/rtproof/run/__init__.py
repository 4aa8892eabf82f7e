# SPDX-License-Identifier: Apache-2.0
"""A run on a target: the agent's process, the lines that it prints, and the live view."""
