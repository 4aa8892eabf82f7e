# SPDX-License-Identifier: Apache-2.0
"""Is one system better than another, and when did a system change? Runs are compared with runs.

The unit is the run. The differences between runs of one system tell how large a difference between two systems has to
be. ``run_metrics`` reads one run, ``likeness`` says whether two runs may be compared, ``compare`` compares two sides,
and ``history`` finds changes in a sequence of runs. docs/comparison.md and docs/history.md have the methods.
"""
