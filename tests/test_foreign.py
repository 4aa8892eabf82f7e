# SPDX-License-Identifier: Apache-2.0
"""Other tools' measurements, run by us: a stand-in for Xenomai's latency, under a real load of the agent's."""

import os
from pathlib import Path

import pytest
from agent_process import agent

from rtproof import profiles
from rtproof.core.errors import TargetError
from rtproof.experiment import local_runner
from rtproof.profiles import OtherTool
from rtproof.run import session

LATENCY = """#!/bin/sh
echo "== Sampling period: 1000 us
== Test mode: $*
RTS|      8.720|     32.945|    106.589|       0|     0|    00:00:01/00:00:01"
"""
OURS = f"cpu:workers=1,restart={1000 + os.getpid()}s"
"""A load that no other test runs at the same time."""


@pytest.fixture
def latency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program of that name, which is on the path."""
    program = tmp_path / "bin" / "latency"
    program.parent.mkdir()
    program.write_text(LATENCY)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return tmp_path


def test_the_programs_of_a_profile_are_run_as_long_as_a_cell(latency: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = profiles.load("bootlin-xenomai").shortened(duration_ns=1_500_000_000)
    here = tuple(OtherTool(each.label, each.command) for each in whole.programs)
    cells = tuple(cell for cell in whole.cells)
    profile = _with(whole, here, cells)
    found = list(local_runner.run_programs(profile, Path(agent()), latency))
    assert [label for label, _ in found] == ["user task", "kernel task", "timer IRQ"]
    assert "-T2 -q" in found[0][1].read_text()
    assert "-t1" in found[1][1].read_text()
    assert "latency -h -H10000 -P99 -T2 -q (user task), 2 s" in capsys.readouterr().err


def test_what_is_not_here_is_said_and_left_out(latency: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = profiles.load("bootlin-xenomai")
    absent = (OtherTool("a", ("latency", "{seconds}"), str(latency / "none")), OtherTool("b", ("no-such-program",)))
    assert list(local_runner.run_programs(_with(profile, absent, profile.cells), Path(agent()), latency)) == []
    said = capsys.readouterr().err
    assert f"latency (a) was not run: there is no {latency / 'none'}" in said
    assert "there is no program 'no-such-program'" in said


def test_a_tool_that_fails_is_a_sentence_with_its_last_line(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"^sh ended with exit code 3: no device$"):
        session.run_tool(["sh", "-c", "echo no device; exit 3"], 1, tmp_path / "said")


def test_a_tool_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "EXTRA_TIME_S", 0)
    with pytest.raises(TargetError, match=r"^sleep did not end within 1 s$"):
        session.run_tool(["sleep", "60"], 1, tmp_path / "said")


def test_loads_run_meanwhile_and_are_gone_afterwards() -> None:
    with session.under_loads(Path(agent()), ["--load", OURS]):
        assert _running()
    assert not _running()


def test_loads_that_cannot_start_are_a_sentence() -> None:
    with pytest.raises(TargetError, match="the loads did not start: there is no load 'nonsense'"):  # noqa: SIM117
        with session.under_loads(Path(agent()), ["--load", "nonsense"]):
            pytest.fail("it went on without a load")


def test_without_loads_nothing_is_started() -> None:
    with session.under_loads(Path("/no/agent"), []):
        assert not _running()


def _with(
    profile: profiles.Profile, some: tuple[OtherTool, ...], cells: tuple[profiles.CellPlan, ...]
) -> profiles.Profile:
    from dataclasses import replace

    quiet = tuple(replace(cell, options={**cell.options, "load": ("cpu:workers=1",)}) for cell in cells)
    return replace(profile, programs=some, cells=quiet)


def _running() -> list[str]:
    """Loads of the agent that are at work."""
    return [line for path in Path("/proc").glob("[0-9]*/cmdline") if OURS in (line := _command_line(path))]


def _command_line(path: Path) -> str:
    """Empty of a process that has ended since it was seen."""
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
