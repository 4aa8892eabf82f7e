# SPDX-License-Identifier: Apache-2.0
"""Every sample of jitterdebugger: its bytes, its folder, and what is refused.

``data/jitterdebugger.zip`` holds folders that Debian's jitterdebugger wrote on a virtual machine: ``jdout`` (4 CPUs),
``stall`` (1 CPU, stopped for 400 ms with SIGSTOP) and ``nanoseconds`` (2 CPUs, option -N).
"""

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rtproof.core.errors import UserError
from rtproof.experiment import stored_runs
from rtproof.importers import jitterdebugger
from rtproof.importers.jitterdebugger import FORMS
from rtproof.judge.analysis_model import State
from rtproof.record.contents import Record
from rtproof.record.requirement import Requirement

ARCHIVE = Path(__file__).parent / "data" / "jitterdebugger.zip"
MS, SECOND = 1_000_000, 1_000_000_000
LITTLE_64 = FORMS["64 bits, little-endian"]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    return tmp_path


def record(path: Path) -> Record:
    return stored_runs.read_run(path).analysis.record


def rows(folder: Path) -> np.ndarray:
    return np.frombuffer((folder / "samples.raw").read_bytes(), LITTLE_64)


def values(path: Path, series: int = 0) -> list[int]:
    return [int(value) for block in record(path).blocks(series) for value in block.values]


def played(n: int = 300, period_ns: int = MS, threads: int = 1, resolution: int = 1_000) -> np.ndarray:
    """Samples of a machine on which each value is known: 10,500 ns, and every tenth 20,700 ns."""
    table = np.zeros(n * threads, LITTLE_64)
    for thread in range(threads):
        late = np.where(np.arange(n) % 10 == 0, 20_700, 10_500)
        ran = 5 * SECOND + 123_456_789 + thread * 37 + np.arange(n) * period_ns + late
        mine = table[thread::threads]
        mine["thread"], mine["s"], mine["ns"], mine["value"] = thread, ran // SECOND, ran % SECOND, late // resolution
    return table


def placed(tmp_path: Path, table: np.ndarray, name: str = "samples.raw") -> Path:
    place = tmp_path / name
    place.write_bytes(table.tobytes())
    return place


def test_a_stall_of_400_ms_is_one_episode_and_each_due_time_in_it_is_late(folders: Path) -> None:
    asked = Requirement(100 * MS, 3600 * SECOND)
    found = stored_runs.read_run(folders / "stall", (asked,), stated=True).analysis
    assert found.verdict.state is State.REFUTED
    assert len(found.verdict.episodes) == 1
    assert found.verdict.exceedances_observed == found.verdict.exceedances_schedule == 322
    assert (found.pooled.observed.count, found.pooled.missed, found.pooled.lost) == (1_963, 0, 0)
    assert {doubt.code for doubt in found.doubts} >= {"format", "not-checked"}


def test_times_latencies_and_numbers_are_those_of_the_file(folders: Path) -> None:
    found = record(folders / "jdout")
    table = rows(folders / "jdout")
    assert [series.thread for series in found.series] == [0, 1, 2, 3]
    for series in found.series:
        mine = table[table["thread"] == series.thread]
        own = np.concatenate([block.values for block in found.blocks(series.id)])
        # Rounded down, each is the printed value, or one more where the due time lies on the edge of a microsecond.
        assert set((own // 1_000 - mine["value"].astype(np.int64)).tolist()) <= {0, 1}
        ran = mine["s"] * SECOND + mine["ns"] - found.begin.origin_monotonic_ns
        due = series.first_due_ns + np.arange(mine.size) * series.period_ns
        assert (due + own).tolist() == ran.tolist()
    assert found.series[0].period_ns == 10 * MS


def test_nanoseconds_are_taken_as_such(folders: Path) -> None:
    table = rows(folders / "nanoseconds")
    assert values(folders / "nanoseconds", 1) == table["value"][table["thread"] == 1].tolist()
    assert record(folders / "nanoseconds").series[0].period_ns == 2 * MS


@pytest.mark.parametrize("form", FORMS)
def test_each_size_and_byte_order_is_recognized(form: str, tmp_path: Path) -> None:
    table = played(threads=2)
    place = placed(tmp_path, table.astype(FORMS[form]))
    assert place.stat().st_size == table.size * (28 if "64" in form else 20)
    assert values(place) == values(placed(tmp_path, table, "same.raw"))


def test_each_latency_is_known_to_a_nanosecond_where_the_due_time_is(tmp_path: Path) -> None:
    found = values(placed(tmp_path, played()))
    # The two values that occur leave 700 - 500 of 1,000 ns known: no latency is too small, none more than 799 ns more.
    assert all(0 <= own - true <= 799 for own, true in zip(found, [20_700, *[10_500] * 9] * 30, strict=True))


def test_samples_that_are_missing_were_lost_and_not_missed(tmp_path: Path) -> None:
    table = played()
    found = stored_runs.read_run(placed(tmp_path, np.delete(table, slice(100, 120)))).analysis
    assert (found.pooled.observed.count, found.pooled.missed, found.pooled.lost) == (280, 0, 20)
    assert any(doubt.code == "lost" for doubt in found.doubts)


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as problem:
        jitterdebugger.read_samples(path)
    return str(problem.value)


def test_what_cannot_be_samples_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "samples.raw"
    for content in (b"\xff" * 280, b"\x7fELF" * 100, b""):
        place.write_bytes(content)
        assert "samples in none of their forms" in refusal(place)
    table = played()
    assert "fit no grid" in refusal(placed(tmp_path, table[::-1]))
    table["value"][50] += 3
    assert "fit no grid" in refusal(placed(tmp_path, table))
    assert "its period is unknown" in refusal(placed(tmp_path, played(2)))


def test_samples_of_another_run_than_results_json_are_refused(folders: Path) -> None:
    place = folders / "jdout" / "samples.raw"
    shutil.copy(folders / "nanoseconds" / "samples.raw", place)
    assert "fit no grid of due times at the resolution" in refusal(folders / "jdout")
    place.write_bytes(played(900).tobytes())
    assert "they are of different runs" in refusal(folders / "jdout")
    table = played(20, period_ns=10 * MS)
    table["thread"] = 7
    place.write_bytes(table.tobytes())
    assert "they are of different runs" in refusal(folders / "jdout")


def with_results(folder: Path, table: np.ndarray, **cpus: dict[str, int]) -> Path:
    """A folder whose results.json counts 300 values of each thread, from 10 to 20 us, except for what is given."""
    folder.mkdir()
    told = {"count": 300, "min": 10, "max": 20, "avg": 11.0, "histogram": {"10": 270, "20": 30}}
    cpu = {number.removeprefix("cpu"): {**told, **figures} for number, figures in cpus.items()}
    (folder / "results.json").write_text(json.dumps({"cpu": cpu, "sysinfo": {"resolution_in_ns": 1_000}}))
    return placed(folder, table)


def state(place: Path) -> State:
    asked = Requirement(100_000, 50 * MS)
    return stored_runs.read_run(place, (asked,), stated=True).analysis.verdict.state


def test_a_maximum_that_no_sample_has_is_told_and_nothing_is_proven(tmp_path: Path) -> None:
    assert state(with_results(tmp_path / "all", played(), cpu0={})) is State.PROVEN
    assert state(with_results(tmp_path / "usual", played(), cpu0={"count": 302})) is State.PROVEN
    place = with_results(tmp_path / "larger", played(3_000), cpu0={"count": 3_001, "max": 5_000})
    assert state(place) is State.UNDECIDED
    notes = [event.text for event in record(place).events]
    assert any("of thread 0 is 5 ms in results.json, and no sample is that long" in n.replace(".0", "") for n in notes)


def test_a_thread_whose_samples_end_early_makes_the_run_invalid(tmp_path: Path) -> None:
    table = played(threads=2)
    early = table[(table["thread"] == 0) | (np.arange(table.size) < 200)]
    assert state(with_results(tmp_path / "whole", table, cpu0={}, cpu1={})) is State.PROVEN
    assert state(with_results(tmp_path / "early", early, cpu0={}, cpu1={})) is State.INVALID


@pytest.mark.parametrize(
    ("cpus", "says"),
    [
        ({"cpu0": {}, "cpu1": {}}, "samples of thread 1 contradict"),
        ({"cpu0": {"max": 5_000}}, "the samples of thread 0 contradict number, minimum or maximum"),
        ({"cpu0": {"min": 1}}, "the samples of thread 0 contradict number, minimum or maximum"),
    ],
)
def test_results_that_the_samples_cannot_have_are_refused(
    cpus: dict[str, dict[str, int]], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=says):
        record(with_results(tmp_path / "run", played(), **cpus))
