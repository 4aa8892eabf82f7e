# SPDX-License-Identifier: Apache-2.0
"""What every other package builds on: errors, new files, units, TOML files, plug-ins, text that is fit to print.

Nothing here knows a record, a target or a report.
"""
