# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab explain``: the same cell once more, with the plugin that records what the guest executes."""

import json
import re
import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import lab_cases
import lab_kernels
import lab_qemu
import pytest
from lab_cases import PLAIN, load, matrix

from rtproof.cli.main import main
from rtproof.core.errors import TargetError
from rtproof.experiment import guest_runner
from rtproof.lab import cell_explanation
from rtproof.lab.cell_explanation import (
    AFTER_SCHEDULER,
    UNTIL_SCHEDULER,
    CellExplanation,
    ExecutedPhase,
    RecordDiffersError,
    recording_up_to,
)
from rtproof.lab.cell_runner import CellResult
from rtproof.lab.guest_cell import CellSetting, GuestCell, cell_store, cell_store_folder
from rtproof.record.run_folder import RECORD_NAME
from rtproof.report.pages.cell_explanation_page import explanation_sections
from rtproof.vm.cache_folders import FILE_LIST
from rtproof.vm.guest import JobOutcome

SHORT = ("--duration", "400ms", "--warmup", "200ms", "--shifts", "1")


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["debian-6.1", "debian-6.1-arm64"])
def test_the_largest_latency_is_accounted_for_to_the_instruction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kernel: str
) -> None:
    """That the second record is the first one to the byte is asserted by the command itself."""
    lab_kernels.kernel(kernel)
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler for the plugin here")
    monkeypatch.chdir(tmp_path)
    model = ["--preempt", "none"] if kernel == "debian-6.1" else []  # that of ARM has no other
    words = ["--kernel", kernel, *model, "--load", "mmap", *SHORT]
    assert main(["lab", "explain", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(phase["length_ns"] for phase in told["phases"]) == told["latency_ns"]
    longest = max(told["phases"], key=lambda phase: phase["length_ns"])
    assert longest["name"] == "from the wake-up until the scheduler came"
    path = [re.sub("__(x64|arm64)_sys_", "", name) for name in longest["path"]]
    own_work = {"mmap", "munmap", "handle_mm_fault"}  # which of them depends on the agent's code
    assert own_work & set(path), "this load maps, touches and unmaps memory, and preempt=none lets it finish"
    assert longest["start_ns"] <= told["marked_ns"] <= longest["start_ns"] + 1_000
    assert told["scheduled_by"][0] == "user code"
    assert told["reading_ns"] < 100
    assert not told["idle"]

    assert main(["lab", "explain", *words]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"from the wake-up until the scheduler came\. No switch: \w+", text), text[:800]
    assert "whole latency" in text


def cell(folder: Path) -> GuestCell:
    agent = folder / "agent"
    agent.write_text("an agent")
    return GuestCell(PLAIN, load("idle"), CellSetting(), agent)


def recorded(monkeypatch: pytest.MonkeyPatch, folder: Path, record: bytes) -> None:
    """Let the second run write this record and nothing else."""

    def run_job(machine: object, job: object, out: Path, timeout_s: float, plugin: Sequence[str]) -> JobOutcome:
        out.mkdir()
        (out / RECORD_NAME).write_bytes(record)
        return JobOutcome(0, "", out, 1.0, 1.0)

    monkeypatch.setattr(cell_explanation, "run_job", run_job)
    monkeypatch.setattr(cell_explanation, "build_plugin", lambda: folder / "plugin.so")


@pytest.mark.parametrize(
    ("again", "words"), [(b"other", "gave another record than the first"), (b"same", "the plugin recorded nothing")]
)
def test_a_second_run_that_differs_or_was_not_recorded_explains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bytes, words: str
) -> None:
    (tmp_path / RECORD_NAME).write_bytes(b"same")
    recorded(monkeypatch, tmp_path, again)
    with pytest.raises(TargetError, match=words):
        next(cell_explanation.recordings(cell(tmp_path), tmp_path, recording_up_to(0x1000, 3, 50_000)))


@pytest.mark.parametrize(("cpus", "guarded"), [(2, True), (1, False)])
def test_several_processors_or_no_guard_get_further_runs_until_one_has_the_same_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpus: int, guarded: bool
) -> None:
    (tmp_path / RECORD_NAME).write_bytes(b"same")
    given = iter((b"other", b"same"))

    def run_job(machine: object, job: object, out: Path, timeout_s: float, plugin: Sequence[str]) -> JobOutcome:
        out.mkdir()
        (out / RECORD_NAME).write_bytes(next(given))
        assert f"out={out.parent / 'blocks'}" in plugin[1].split(","), "no file of an earlier run is taken"
        recording = struct.pack("=4sIQQ", b"RTPB", 2, 0, 1 << 56 | 7)
        (out.parent / "blocks.3").write_bytes(recording)
        return JobOutcome(0, "", out, 1.0, 1.0, guarded)

    recorded(monkeypatch, tmp_path, b"")
    monkeypatch.setattr(cell_explanation, "run_job", run_job)
    system = replace(PLAIN, machine=replace(PLAIN.machine, cpus=cpus))
    wanted = recording_up_to(0x1000, 3, 50_000)
    (found,) = cell_explanation.recordings(replace(cell(tmp_path), system=system), tmp_path, wanted)
    assert (found.end_cpu, found.end_ns, next(given, None)) == (1, 7, None)


def measured_cells(folder: Path, shifts: int) -> tuple[list[GuestCell], Callable[[], list[CellResult]]]:
    """Cells of a lab without virtual machines, and what measures those that the store lacks; shift 1 is the largest."""
    cells = matrix(folder, "mmap", systems=(PLAIN,), shifts=shifts)

    def measure() -> list[CellResult]:
        return list(lab_cases.run(cells, cell_store()).results)

    return cells, measure


EXPLAINED = CellExplanation(
    "plain, mmap", 100, 3, 10, (ExecutedPhase(AFTER_SCHEDULER, 0, 100, (), ()),), 78, (), 8, False
)


@pytest.mark.parametrize(("differing", "replaced"), [(0, ()), (2, (701_000, 701_000))])
def test_a_cell_whose_record_is_not_repeated_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, differing: int, replaced: tuple[int, ...]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cells, measure = measured_cells(tmp_path, shifts=2)
    asked: list[tuple[GuestCell, float]] = []

    def explain(cell: GuestCell, folder: Path) -> CellExplanation:
        asked.append((cell, (folder / RECORD_NAME).stat().st_ctime_ns))
        if len(asked) <= differing:
            raise RecordDiffersError("differs")
        return EXPLAINED

    monkeypatch.setattr(guest_runner, "explain_cell", explain)
    found = guest_runner.explain_largest_shift(measure)
    assert found == replace(EXPLAINED, replaced_ns=replaced)
    assert [cell for cell, _ in asked] == [cells[1]] * (differing + 1)
    assert len({time for _, time in asked}) == differing + 1, "each time another record"
    text = str(explanation_sections(found))
    assert ("The cell was measured again" in text) == bool(replaced)
    assert ("Its largest latency was 701 us, 701 us." in text) == bool(replaced)


def test_a_cell_that_measuring_does_not_mend_is_refused_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cells, measure = measured_cells(tmp_path, shifts=1)

    def explain(cell: GuestCell, folder: Path) -> CellExplanation:
        raise RecordDiffersError("differs")

    monkeypatch.setattr(guest_runner, "explain_cell", explain)
    with pytest.raises(
        TargetError, match=r"measured 3 times, and no run .* the largest latencies were 700 us, 700 us, 700 us"
    ):
        guest_runner.explain_largest_shift(measure)
    assert cell_store().find(cells[0].key()) is None


MMAP = {
    "kernels": ["debian-6.1"],
    "preempts": ["none"],
    "boots": [""],
    "loads": ["mmap"],
    "module": (),
    "setup": (),
    "period": "1ms",
    "duration": "200ms",
    "probe": "timer",
    "shifts": 1,
    "cpus": 1,
    **dict.fromkeys(("measured_cpus", "pace_us", "soakers", "qemu", "method", "policy", "priority")),
}


def stored(warmup: str) -> Path:
    """Where the store has the cell of plain 6.1 under mmap with this warm-up."""
    (found,) = guest_runner.matrix_cells(MMAP | {"warmup": warmup})
    return cell_store_folder() / found.key()


@pytest.mark.slow
def test_a_record_of_another_run_is_replaced_and_the_new_one_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The store is given a record that this cell never gave: that of a longer warm-up."""
    lab_kernels.kernel("debian-6.1")
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler for the plugin here")
    monkeypatch.chdir(tmp_path)

    def explained(warmup: str) -> dict[str, Any]:
        words = ["--kernel", "debian-6.1", "--preempt", "none", "--load", "mmap", "--duration", "200ms"]
        assert main(["lab", "explain", *words, "--shifts", "1", "--warmup", warmup, "--json"]) == 0
        return cast(dict[str, Any], json.loads(capsys.readouterr().out))

    other, first = explained("210ms"), explained("200ms")
    wrong, right = stored("210ms"), stored("200ms")
    manifest, taken = (json.loads((each / FILE_LIST).read_text()) for each in (right, wrong))
    assert manifest["files"][RECORD_NAME]["sha256"] != taken["files"][RECORD_NAME]["sha256"]
    manifest["files"][RECORD_NAME] = taken["files"][RECORD_NAME]
    try:
        shutil.copyfile(wrong / RECORD_NAME, right / RECORD_NAME)
        (right / FILE_LIST).write_text(json.dumps(manifest))
        assert explained("200ms") == {**first, "replaced_ns": [other["latency_ns"]]}
    finally:
        shutil.rmtree(right)  # the store is the user's


@pytest.mark.slow
def test_turns_of_other_processors_are_told_from_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Woken from CPU 0, measured on CPU 1. That the second record is the first one is asserted by the command."""
    lab_qemu.for_several_processors()
    lab_kernels.kernel("debian-6.1-rt")
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler for the plugin here")
    monkeypatch.chdir(tmp_path)
    words = ["--processors", "2", "--measured-cpus", "1", "--probe", "ipc:sender=other", "--duration", "300ms"]
    code = main(["lab", "explain", "--kernel", "debian-6.1-rt", *words, "--warmup", "100ms", "--shifts", "1", "--json"])
    assert code == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["cpus_count"], told["cpu"], told["soaked"]) == (2, 1, True)
    assert told["own_ns"] + told["others_ns"] == told["latency_ns"]
    assert sum(phase["length_ns"] for phase in told["phases"]) == told["latency_ns"]
    assert [phase["name"] for phase in told["phases"]] == [UNTIL_SCHEDULER, AFTER_SCHEDULER]
    assert told["others_ns"] > 0
