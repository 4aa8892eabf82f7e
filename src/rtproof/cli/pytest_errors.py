# SPDX-License-Identifier: Apache-2.0
"""What the plugin for pytest and its runs share. It imports nothing, because every run of pytest loads it."""

LABGRID_FIXTURE = "labgrid-fixture"
"""The name of a target that stands for labgrid's own fixture ``target``."""


class MeasurementError(Exception):
    """Nothing was measured that could be judged: a bad option, a board that is gone. pytest reports it as an error."""
