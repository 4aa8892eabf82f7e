# SPDX-License-Identifier: Apache-2.0

import pytest
from doubt_cases import clean, facts, said_of, with_facts

from rtproof.record.contents import Event, Moment
from rtproof.summary.summary_model import Severity

ASKED, START, DURING, END = Moment


@pytest.mark.parametrize("moment", [START, DURING, END])
def test_another_policy_than_asked(moment: Moment) -> None:
    doubt = with_facts({("policy", moment): "rr"})["policy"]
    assert doubt.severity is Severity.INVALID
    assert doubt.what == f"policy fifo was asked for, but effective was: thread 0 {moment.name.lower()}: rr"


def test_another_priority_than_asked() -> None:
    found = with_facts({("priority", START): "2"})
    assert set(found) == {"priority"}
    assert found["priority"].what.startswith("priority 80 was asked for, but effective was: thread 0 start: 2")


def test_other_has_no_priority() -> None:
    other = {("policy", moment): "other" for moment in Moment} | {("timer_slack_ns", START): "0"}
    assert with_facts({**other, ("priority", ASKED): "0"}) == {}


def test_other_instead_of_fifo_as_the_user_allowed() -> None:
    changes = {("policy", moment): "other" for moment in (START, DURING, END)}
    changes |= {("priority", moment): "0" for moment in (START, DURING, END)}
    changes |= {("allow_unprivileged", ASKED): "yes", ("timer_slack_ns", START): "0"}
    found = with_facts(changes)
    assert set(found) == {"unprivileged"}
    assert found["unprivileged"].severity is Severity.INVALID
    found = said_of(clean(facts=facts(changes)), limit_ns=None)
    assert found["unprivileged"].severity is Severity.WARNING


def test_losing_the_policy_in_mid_run_is_not_what_the_user_allowed() -> None:
    found = with_facts({("allow_unprivileged", ASKED): "yes", ("policy", END): "other"})
    assert found["policy"].severity is Severity.INVALID


def test_a_policy_that_somebody_changed() -> None:
    found = said_of(clean(events=(Event(5, 0, "policy_changed", "other"),)))
    assert found["policy-changed"].what.endswith("thread 0 became other")


def test_another_cpu_than_its_own() -> None:
    found = with_facts({("cpu", END): "1"})
    assert found["cpu"].severity is Severity.INVALID
    assert found["cpu"].what == "thread 0 was bound to CPU 2 and ran on CPU 1"


def test_timer_slack_counts_without_real_time_only() -> None:
    changes = {("policy", moment): "other" for moment in Moment}
    assert (
        with_facts(changes)["timer-slack"].what
        == "the kernel may put off the timers of thread 0 by 50 us (timer slack)"
    )
    assert "timer-slack" not in with_facts({})


def test_memory_that_was_not_locked() -> None:
    found = with_facts({("memory_locked", START): "no: Cannot allocate memory"})
    assert found["memory-unlocked"].severity is Severity.WARNING
    assert "(Cannot allocate memory)" in found["memory-unlocked"].what


@pytest.mark.parametrize(("asked", "severity"), [("yes", Severity.INVALID), ("no", Severity.WARNING)])
@pytest.mark.parametrize("kind", ["minor_faults", "major_faults"])
def test_page_faults_in_the_loop(kind: str, asked: str, severity: Severity) -> None:
    found = with_facts({(kind, END): "3", ("lock_memory", ASKED): asked})
    assert found["page-faults"].severity is severity
    assert "3 m" in found["page-faults"].what


def test_idle_states_that_could_not_be_limited() -> None:
    found = with_facts({("dma_latency", START): "unavailable: Permission denied"})
    assert "(Permission denied)" in found["dma-latency"].what
