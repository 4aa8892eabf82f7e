# SPDX-License-Identifier: Apache-2.0

import json
from pathlib import Path

import pytest

from rtproof import importers
from rtproof.core.errors import UserError
from rtproof.importers import jitterdebugger

FILE = Path(__file__).parent / "data" / "jitterdebugger.json"


def test_measured_file() -> None:
    """84 values of CPU 0, of which 76 are in a bin."""
    found = importers.read(FILE)
    assert found.tool == jitterdebugger.TOOL
    first = found.parts[0]
    assert first.histogram is not None
    assert (first.cpu, first.count, first.histogram.total, first.overflow) == (0, 84, 76, 8)
    assert (first.min_ns, first.max_ns, found.resolution_ns) == (32_000, 7_926_000, 1_000)
    assert found.overflow == sum(part.overflow or 0 for part in found.parts)
    assert found.faults == ()
    assert found.comparable["machine"] == "x86_64"


def test_nanoseconds() -> None:
    one = {"histogram": {"900": 2}, "count": 2, "min": 900, "max": 900, "avg": 900.0}
    found = jitterdebugger.read(json.dumps({"version": 3, "sysinfo": {"resolution_in_ns": 1}, "cpu": {"0": one}}))
    assert (found.max_ns, found.resolution_ns, found.overflow) == (900, 1, 0)


@pytest.mark.parametrize(
    ("was", "is_now", "says"),
    [
        ('"count": 84', '"count": "many"', "not of its form"),
        ('"resolution_in_ns": 1000', '"resolution_in_ns": 0', "makes no sense"),
        ('"max": 7926', '"max": 18446744073709551610', "without its sign"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(tmp_path: Path, was: str, is_now: str, says: str) -> None:
    text = FILE.read_text()
    assert was in text
    wrong = tmp_path / "results.json"
    wrong.write_text(text.replace(was, is_now))
    with pytest.raises(UserError, match=says):
        importers.read(wrong)


def test_values_in_no_bin_did_not_lie_beyond_the_scale_if_the_maximum_did_not() -> None:
    found = jitterdebugger.read(FILE.read_text().replace('"max": 7926', '"max": 700'))
    assert (found.parts[0].overflow, found.parts[0].count) == (None, 76)


def test_our_own_files_are_not_taken_for_its() -> None:
    for text in ("{}", '{"schema": "rtproof.analysis", "cpu": 1}', "[]"):
        assert not jitterdebugger.looks_like(text)
