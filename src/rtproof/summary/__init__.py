# SPDX-License-Identifier: Apache-2.0
"""From a record to numbers: what was measured, of each series and of all threads, and the facts of the system."""
