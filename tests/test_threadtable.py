# SPDX-License-Identifier: Apache-2.0

from hypothesis import given
from hypothesis import strategies as st
from report_cases import system_file
from system_records import TOLD, target

from rtproof.summary.thread_table import TargetThread, target_threads


def test_a_thread_has_policy_priority_and_place() -> None:
    found = {thread.name: thread for thread in target_threads(TOLD)}
    assert found["irq/24-eth0"] == TargetThread(62, 62, "FF", 50, None, 0, "irq/24-eth0", True)
    assert found["kworker/1:0H-kblockd"].nice == -20
    assert found["a (strange) name"] == TargetThread(900, 902, "DLN", None, None, 2, "a (strange) name", False)
    assert [thread.name for thread in target_threads(TOLD) if thread.interrupt] == ["irq/24-eth0", "irq/25-mmc0"]
    assert not found["init"].real_time
    assert found["rtproof-0"].real_time


def test_a_record_without_threads_has_none() -> None:
    assert target_threads(target("x")) == ()


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    assert all(thread.cpu >= 0 for thread in target_threads(target("x", system_file("threads", text))))
