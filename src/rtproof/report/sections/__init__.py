# SPDX-License-Identifier: Apache-2.0
"""The sections of a report: pure functions from an Analysis to a list of blocks, which ``section_list.py`` names."""
