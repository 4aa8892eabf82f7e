# SPDX-License-Identifier: Apache-2.0
"""Outputs as people published them: each is read as its right values say, which were computed apart from rtproof.

The files lie in ``golden_outputs/inputs/public``. Where they come from stands in ``golden_outputs/sources``. Those of
``data/public/pasted.toml`` name their source beside them.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from rtproof import importers
from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.summary.imported_histogram import ImportedHistogram

PUBLIC = Path(__file__).parent / "golden_outputs" / "inputs" / "public"
US = 1_000


def read(name: str) -> ImportedHistogram:
    return importers.read(PUBLIC / name)


def exceeding(found: ImportedHistogram, thread: int, limit_ns: int) -> tuple[int, int]:
    counts = found.parts[thread].histogram
    assert counts is not None
    return counts.exceedances(limit_ns)


def test_oslat_since_2_5_rounds_up_to_whole_microseconds() -> None:
    """Source of oslat 2.5: a value becomes its microseconds, rounded up, and its bin is one more than that.

    Rounded down, the 582,741,767 values of CPU 1 in "002" would be 1 us or longer each, 582 s in a run of 60 s.
    """
    found = read("oslat-2.60-vm.txt")
    assert found.faults == ()
    assert [part.count for part in found.parts] == [582_741_767, 615_459_390]
    assert [part.overflow for part in found.parts] == [0, 2]
    assert (found.min_ns, found.largest_ns) == (1 * US, 56 * US)
    assert [part.max_ns for part in found.parts] == [27 * US, 56 * US]
    # label >= 023: above 21 us; label 022: in (20, 21] us.
    assert exceeding(found, 0, 21 * US) == (6 + 2 + 1, 6 + 2 + 1)
    assert exceeding(found, 0, 20 * US) == (15 + 9, 15 + 9)
    total_ns = float((found.parts[0].histogram.lo * found.parts[0].histogram.n).sum())  # type: ignore[union-attr]
    assert total_ns < 60e9
    assert found.mean_ns is not None
    assert 1_000 < found.mean_ns <= 1_001
    assert not found.exceeds(55_500)  # the largest value lies between 55 and 56 us
    assert found.exceeds(55_000)


def test_hwlatdetects_times_are_episodes(capsys: pytest.CaptureFixture[str]) -> None:
    found = read("hwlatdetect-with-times.txt")
    assert dict(found.facts)["SMIs during the run"] == "0"
    assert sum(line.most_ns.size for line in found.lines) == 37
    assert sum(int((line.most_ns > 40 * US).sum()) for line in found.lines) == 13
    limit = ["--limit", "40us", "--at-most", "1/h", "--gap", "60s", "--fixed-beforehand"]
    main(["judge", str(PUBLIC / "hwlatdetect-with-times.txt"), *limit])
    text = " ".join(capsys.readouterr().out.split())
    assert "exceeded by at least 13 samples" in text
    assert "in at least 3 episodes" in text


# Found later. The numbers are those of files in an index of public repositories.


def read_text(text: str, tmp_path: Path) -> ImportedHistogram:
    (tmp_path / "x").write_text(text)
    return importers.read(tmp_path / "x")


@pytest.mark.parametrize("remark", ["           # 每个线程的最小延迟", "       -- 最小延时", "  //这里记录的是"])
def test_remarks_behind_the_lines_hide_no_figure(remark: str, tmp_path: Path) -> None:
    """openEuler's guide (19139757174) and notes (15708427174) explain each line behind it."""
    rows = ["# Histogram", "000010 000111   000005", "000031 000000   000001"]
    footer = ["# Min Latencies: 00010 00010", "# Avg Latencies: 00010 00013", "# Max Latencies: 00010 00031"]
    lines = [*rows, *footer, "# Histogram Overflows: 00000 00000"]
    found = read_text("".join(line + remark * (line[0] == "0" or "L" in line) + "\n" for line in lines), tmp_path)
    assert (found.count, found.max_ns, found.overflow) == (117, 31 * US, 0)
    assert (found.faults, found.doubts) == ((), ())


@pytest.mark.parametrize("stop", ["^C\n", "^C"])
def test_latency_that_the_user_stopped(stop: str, tmp_path: Path) -> None:
    """BeagleBone (29189082555), and the pages of EVL (35136730877): ^C stands before the line of the end."""
    found = read_text(
        f"""== Sampling period: 1000 us
== Test mode: periodic user-mode task
== All results in microseconds
warming up...
RTT|  00:00:01  (periodic user-mode task, 1000 us period, priority 99)
RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
RTD|      4.458|      7.504|     49.833|       0|     0|      4.458|     49.833
RTD|      4.374|      5.142|     31.166|       0|     0|      4.374|     49.833
{stop}---|-----------|-----------|-----------|--------|------|-------------------------
RTS|      4.374|      6.187|     49.833|       0|     0|    00:00:02/00:00:02
""",
        tmp_path,
    )
    assert (found.min_ns, found.mean_ns, found.max_ns) == (4_374, 6_187, 49_833)
    assert found.duration_ns == 2_000_000_000
    assert not [note for note in found.notes if "does not print" in note]


PASTED = tomllib.loads((Path(__file__).parent / "data" / "public" / "pasted.toml").read_text())["paste"]


@pytest.mark.parametrize("paste", PASTED, ids=[paste["what"] for paste in PASTED])
def test_what_people_pasted(paste: dict[str, Any], tmp_path: Path) -> None:
    if refusal := paste.get("refused"):
        try:
            said = read_text(paste["text"], tmp_path).faults
        except UserError as problem:
            said = (str(problem),)
        assert any(refusal in sentence for sentence in said)
        return
    found = read_text(paste["text"], tmp_path)
    assert found.tool == paste["tool"]
    assert [
        [each.number, each.count, *(ns and ns / US for ns in (each.min_ns, each.mean_ns, each.max_ns))]
        for each in found.threads
    ] == [[None if value == "" else value for value in part] for part in paste["parts"]]
    assert paste["note"] in " ".join(found.notes)
    assert (found.faults, found.doubts) == ((), ())
