# SPDX-License-Identifier: Apache-2.0
"""Reasons not to believe a number: ``registry`` lists them all.

A check turns a ``CheckedRun`` into doubts, by what its record tells. A rule in ``row_SUBJECT.py`` turns rows of
figures into doubts, whether a run of rtproof, another tool or an article tells them.
"""
