# SPDX-License-Identifier: Apache-2.0
"""Statistics that need no record: exact bounds, the sequential test, and the functions under them.

Plain numbers go in and plain numbers come out. Nothing here knows a latency, a limit or a run.
"""
