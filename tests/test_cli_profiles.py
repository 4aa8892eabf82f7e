# SPDX-License-Identifier: Apache-2.0
"""``rtproof profiles`` with an agent that lists what it is told."""

from pathlib import Path

import pytest

from rtproof import profiles
from rtproof.cli.main import main
from rtproof.experiment.profile_setup import agent_abilities, what_profile_lacks

LISTED = """probe	kernel	words
method	kernel	auto	words; not here: the module is not loaded, and no tracer
method	kernel	user	words; not here: the module is not loaded
method	kernel	loop	words; not here: the module is not loaded
method	timerlat	auto	words
method	timerlat	thread	words
method	timer	clock_nanosleep	words
load	cpu	words
load	comms	words
load	rtc	words; not here: there is no real-time clock
"""
DOLOAD = "".join(f"load\t{name}\twords\n" for name in ("serve", "zero", "sched", "lsr"))
TIMERS = "".join(f"method\ttimer\t{name}\twords\n" for name in ("nanosleep", "setitimer", "posix_timer"))


@pytest.fixture
def agent(tmp_path: Path) -> str:
    listed = tmp_path / "listed"
    listed.write_text(LISTED)
    program = tmp_path / "agent"
    program.write_text(f"#!/bin/sh\ncat {listed}\n")
    program.chmod(0o755)
    return str(program)


def test_a_method_knows_why_it_cannot_run() -> None:
    found = agent_abilities(LISTED)
    assert found.methods["kernel", "user"] == "the module is not loaded"
    assert found.methods["kernel", ""] == "the module is not loaded, and no tracer"
    assert found.methods["timerlat", "thread"] == ""


def test_what_a_profile_lacks_is_told() -> None:
    found = agent_abilities(LISTED)
    assert what_profile_lacks(profiles.load("akamina"), found) == [
        "by way of timerlat (kernel: the module is not loaded)"
    ]
    assert what_profile_lacks(profiles.load("akamina"), found, short=True) == ["by way of timerlat"]
    assert what_profile_lacks(profiles.load("bootlin-xenomai"), agent_abilities(LISTED + DOLOAD), short=True) == [
        "2 of 3 cells: by way of timerlat",
        "1 of 3 cells: by way of timer",
    ]
    (line,) = what_profile_lacks(profiles.load("ten-ms"), found)
    assert line.startswith("can't run here (kernel: the module is not loaded; ")
    assert "cycle: this agent has no probe cycle" in line
    gpio = what_profile_lacks(profiles.load("bootlin-gpio"), found)
    assert gpio[0] == "--set chip=... (chip of the two lines: its number, label or /dev/gpiochipN)"
    assert gpio[3] == "can't run here (this agent has no probe gpio with such a method)"
    assert what_profile_lacks(profiles.load("bootlin-gpio"), found, short=True)[0] == "--set chip=..."
    assert what_profile_lacks(profiles.load("bootlin-timer"), agent_abilities(LISTED + TIMERS + DOLOAD)) == []


def test_loads_that_lack_something_are_told() -> None:
    assert what_profile_lacks(profiles.load("toradex"), agent_abilities(LISTED)) == [
        "1 of 2 cells: can't run here (this agent has no load irqmix)"
    ]
    listed = LISTED.replace("; not here: the module is not loaded", "") + "load\tdd\twords\nload\ttimers\twords\n"
    told = what_profile_lacks(profiles.load("ten-ms"), agent_abilities(listed + "load\tpingflood\twords\n"))
    assert told == ["4 of 5 cells: by way of kernel without rtc (kernel: there is no real-time clock)"]


def test_all_profiles_are_listed_with_their_length(agent: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "--agent", agent]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for name in profiles.names():
        assert f"{name} " in out
    assert "8 h 20 min" in out
    assert "by way of timerlat" in out


@pytest.mark.parametrize("name", profiles.names())
def test_the_cells_of_each_are_listed(name: str, agent: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", name, "--agent", agent]) == 0
    out = capsys.readouterr().out
    for cell in profiles.load(name).cells:
        assert cell.key in out


def test_an_unknown_profile_is_one_sentence(agent: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "moon", "--agent", agent]) == 2
    assert capsys.readouterr().err.startswith("rtproof: there is no profile 'moon'; there are: akamina")
