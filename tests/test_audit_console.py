# SPDX-License-Identifier: Apache-2.0
"""The checks of the console, of tracing and of the kernel's watchdogs."""

import pytest
from audit_cases import judged, made_facts

from rtproof.audit.fitted_advice import fitted

SYSCTL, TRACING = "/proc/sys/kernel", "/sys/kernel/tracing"
OLD_TRACING = "/sys/kernel/debug/tracing"


@pytest.mark.parametrize("root", [TRACING, OLD_TRACING])
def test_the_change_names_the_instances_that_trace(root: str) -> None:
    """Also where tracefs is below debugfs only."""
    files: dict[str, str | int] = {f"{root}/current_tracer": "nop\n", f"{root}/set_event": ""}
    left, mine = f"{root}/instances/rtproof-7_9-trace", f"{root}/instances/mine"
    for instances, expected in (
        ([left], f"echo > {left}/set_event"),
        ([left, mine], f"for folder in {mine} {left}; do "),
    ):
        traced = made_facts({**files, **{f"{each}/set_event": "sched:sched_switch\n" for each in instances}})
        assert expected in fitted(traced, judged("trace.active", traced)).check.change.now
