# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab explain``: the same cell once more, with the plugin that records what the guest executes."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import lab_kernels
import pytest
from lab_cases import PLAIN, load

from rtproof.cli.main import main
from rtproof.core.errors import TargetError, UserError
from rtproof.lab import cell_explanation
from rtproof.lab.cell_explanation import recording_up_to
from rtproof.lab.guest_cell import CellSetting, GuestCell
from rtproof.record.run_folder import RECORD_NAME

SHORT = ("--duration", "400ms", "--warmup", "200ms", "--shifts", "1")


@pytest.mark.slow
def test_the_largest_latency_is_accounted_for_to_the_instruction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That the second record is the first one to the byte is asserted by the command itself."""
    lab_kernels.kernel("debian-6.1")
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler for the plugin here")
    monkeypatch.chdir(tmp_path)
    words = ["--kernel", "debian-6.1", "--preempt", "none", "--load", "mmap", *SHORT]
    assert main(["lab", "explain", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(phase["length_ns"] for phase in told["phases"]) == told["latency_ns"]
    longest = max(told["phases"], key=lambda phase: phase["length_ns"])
    assert longest["name"] == "from the wake-up until the scheduler came"
    own_work = {"__x64_sys_mmap", "__x64_sys_munmap", "handle_mm_fault"}  # which of them depends on the agent's code
    assert own_work & set(longest["path"]), "this load maps, touches and unmaps memory, and preempt=none lets it finish"
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

    def run_job(machine: object, job: object, out: Path, timeout_s: float, plugin: Sequence[str]) -> None:
        out.mkdir()
        (out / RECORD_NAME).write_bytes(record)

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
        cell_explanation.recorded_blocks(cell(tmp_path), tmp_path, recording_up_to(0x1000, 3, 50_000))


def test_an_agent_that_is_not_of_these_sources_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "mapped"
    other.write_text("another agent")
    monkeypatch.setattr(cell_explanation, "build_agent", lambda *words, mapped: other)
    with pytest.raises(UserError, match="is not what its sources give"):
        cell_explanation.agent_marks(cell(tmp_path))


def test_an_unknown_load_is_refused_before_anything_boots(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "explain", "--kernel", "debian-6.1", "--load", "mmpa"]) == 2
    assert "there is no load 'mmpa'" in capsys.readouterr().err
