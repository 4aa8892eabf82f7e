# SPDX-License-Identifier: Apache-2.0
"""Checks of a run: pure functions that turn a ``CheckedRun`` into doubts. ``judge.analyse.CHECKS`` lists them all."""
