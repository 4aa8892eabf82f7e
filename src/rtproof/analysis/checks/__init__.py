# SPDX-License-Identifier: Apache-2.0
"""Checks of a run, by what they look at: pure functions from a Case to doubts. ``doubts`` lists them all."""
