# SPDX-License-Identifier: Apache-2.0
"""The sections of a report. A section is a pure function from an Analysis to a list of blocks.

A module holds the sections of one subject. ``report/section_list.py`` has the order, names and titles of all sections.
"""
