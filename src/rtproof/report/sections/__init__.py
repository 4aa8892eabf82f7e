# SPDX-License-Identifier: Apache-2.0
"""What the sections of a report show. A section is a function from an Analysis to a list of blocks.

The function is pure and may share its module with others of its subject. ``report/section_list.py`` has the order, the
names and the titles of all sections.
"""
