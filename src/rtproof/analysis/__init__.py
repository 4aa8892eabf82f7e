# SPDX-License-Identifier: Apache-2.0
"""Pure functions from a record to numbers, doubts and a verdict: no clock, no printing, no file but the record's.

``model`` has the results as frozen data; ``analyse`` is the one entry that the rest of the program calls.
"""
