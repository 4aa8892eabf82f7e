# SPDX-License-Identifier: Apache-2.0
"""The base of all other packages: errors, new files, units, TOML files, plug-ins and printable text.

No module here knows about records, targets or reports.
"""
