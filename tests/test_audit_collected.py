# SPDX-License-Identifier: Apache-2.0
"""What the checks ask for is what the agent collects: no check can stay unknown for ever."""

import pytest
from audit_systems import stored_names, stored_record
from test_agent_facts import listed

from rtproof.audit import judgement
from rtproof.audit.check import Check
from rtproof.audit.check_file import all_checks
from rtproof.audit.facts import AuditRequest, Facts, Reading, State, fits
from rtproof.record.contents import Moment

OF_THE_MACHINE = ("threads", "kernel-log", "frequencies", "rt-group", "fair-server", "rt-threads", "/proc/config.gz")
"""Parts that the agent reads besides its lists."""
OF_THE_RECORD = ("config", "boot", "uname -v", "uname -rv")
"""What stands in every record, or is taken from files that are in the lists."""


def is_collected(path: str, rows: list[list[str]]) -> bool:
    """Whether a row of the agent's list is this path or pattern, or has a pattern that it fits."""
    return path in OF_THE_MACHINE or any(path == row[1] or fits(path, row[1]) for row in rows)


@pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.id)
def test_all_that_a_check_names_is_collected(check: Check, agent_rows: list[list[str]]) -> None:
    named = [path for path in check.read if path.partition(":")[0] not in OF_THE_RECORD]
    assert [path for path in named if not is_collected(path, agent_rows)] == []


@pytest.fixture(scope="module")
def agent_rows() -> list[list[str]]:
    """The rows of the agent's list."""
    return listed()


def test_no_check_asks_for_what_the_agent_never_collects(
    monkeypatch: pytest.MonkeyPatch, agent_rows: list[list[str]]
) -> None:
    """With the facts of stored systems, so that functions go as far as they can, whatever this machine has."""
    missed = set()
    read = Facts.read

    def noted(self: Facts, path: str, moment: Moment = Moment.START) -> Reading:
        found = read(self, path, moment)
        if found.state is State.NOT_COLLECTED and moment is Moment.START and not is_collected(path, agent_rows):
            missed.add(path)
        return found

    monkeypatch.setattr(Facts, "read", noted)
    for name in stored_names():
        judgement.audit(Facts(stored_record(name), AuditRequest(frozenset({0}), 1)))
    assert missed == set()
