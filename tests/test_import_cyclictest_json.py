# SPDX-License-Identifier: Apache-2.0

import json
from pathlib import Path
from typing import Any

import pytest

from rtproof import importers
from rtproof.core.errors import UserError
from rtproof.importers import cyclictest_json

DATA = Path(__file__).parent / "data" / "cyclictest"


def document(command: str = "cyclictest -h 50 -p 80 -i 250", **thread: Any) -> str:
    one = {"histogram": {"20": 3, "49": 1}, "cycles": 4, "min": 20, "max": 49, "avg": 27.25, "cpu": 1} | thread
    head = {"cmdline:": command, "rt_test_version:": "2.40", "resolution_in_ns": 0}
    return json.dumps(head | {"thread": {"0": one}})


def test_measured_file_has_the_figures_of_the_text_and_when_it_ran() -> None:
    found, text = importers.read(DATA / "result.json"), importers.read(DATA / "histogram.txt")
    assert found.tool == cyclictest_json.TOOL
    assert found.histogram is not None
    assert text.histogram is not None
    assert found.histogram.n.tolist() == text.histogram.n.tolist()
    assert (found.count, found.overflow, found.max_ns, found.scale_ns) == (200, 50, text.max_ns, text.scale_ns)
    assert (found.duration_ns, found.asked_duration_ns, found.started_s) == (10**9, 10**9, 1_795_216_821)
    assert [part.cpu for part in found.parts] == [0, 1]
    assert dict(found.facts)["release"] == "6.18.44-fc-v595"
    assert found.faults == ()
    assert found.comparable["kernel release"] == "6.18.44-fc-v595"
    assert (found.comparable["probe"], found.comparable["threads"]) == ("cyclictest", "2")


def test_one_stall_of_400_ms_is_one_value() -> None:
    found = importers.read(DATA / "stall.json")
    assert found.histogram is not None
    assert found.histogram.exceedances(10_000_000) == (1, 1)
    assert (found.count, found.max_ns, found.period_ns, found.priority) == (1_593, 402_666_000, 1_000_000, 80)


@pytest.mark.parametrize("words", ["-i 250 -p 7 -D 3m", "-i250 -p7 -D3m", "--interval=250 --priority=7 --duration=3m"])
def test_options_may_be_written_in_three_ways(words: str) -> None:
    found = cyclictest_json.read(document(f"cyclictest {words}"))
    assert (found.period_ns, found.priority, found.asked_duration_ns) == (250_000, 7, 180 * 10**9)


def test_nanoseconds() -> None:
    text = document().replace('"resolution_in_ns": 0', '"resolution_in_ns": 1')
    found = cyclictest_json.read(text)
    assert (found.max_ns, found.resolution_ns, found.scale_ns) == (49, 1, 50)


def test_what_is_in_no_bin_lay_beyond_the_scale_if_the_maximum_did() -> None:
    found = cyclictest_json.read(document(cycles=6, max=80))
    assert (found.count, found.overflow) == (6, 2)


def test_what_was_counted_while_the_file_was_written_is_left_out() -> None:
    found = cyclictest_json.read(document(cycles=6, max=48))
    assert (found.count, found.overflow, found.faults) == (4, None, ())
    assert any("2 cycles are counted" in note for note in found.notes)


def test_run_whose_every_value_lay_beyond_the_scale() -> None:
    found = cyclictest_json.read(document(histogram={}, min=60, max=80))
    assert found.histogram is not None
    assert (found.histogram.total, found.overflow, found.count) == (0, 4, 4)


def test_without_a_histogram_and_a_priority() -> None:
    found = cyclictest_json.read(document("cyclictest -b 20", histogram={}))
    assert (found.histogram, found.count, found.overflow, found.priority) == (None, 4, None, 0)
    assert [words for words in ("-p", "-h", "-b") if not any(words in note for note in found.notes)] == []


def test_contradictions_are_named() -> None:
    assert "ends at 49 us" in cyclictest_json.read(document(max=48)).faults[0]
    assert "mean" in cyclictest_json.read(document(avg=7.0)).faults[0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (document().replace('"cycles": 4', '"cycles": "four"'), "not of its form"),
        (document()[:-20], "not of its form"),
        (document(max=2**64 - 5), "without its sign"),
        (document(histogram={"20": 2**64 - 5}), "no computer"),
        ('{"cmdline:": "cyclictest", "rt_test_version:": "2.4", "thread": {}}', "no thread"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "cy.json"
    file.write_text(content)
    with pytest.raises(UserError, match=says) as refused:
        importers.read(file)
    assert str(file) in str(refused.value)
