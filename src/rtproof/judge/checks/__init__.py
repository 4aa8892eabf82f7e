# SPDX-License-Identifier: Apache-2.0
"""Checks of a run: pure functions from a Case to doubts. ``analyse.CHECKS`` lists them all."""
