# SPDX-License-Identifier: Apache-2.0
"""Many runs of one system in the order of their start: where did its latency change, and what changed with it.

``changes`` finds the places in one sequence of numbers; ``history`` does it for every metric of a sequence of runs.
"""
