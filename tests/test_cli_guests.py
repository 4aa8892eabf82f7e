# SPDX-License-Identifier: Apache-2.0
"""Other tools' measurements, run by us: a stand-in for Xenomai's latency, under a real load of the agent's."""

import os
from pathlib import Path

import pytest
from agent_process import agent, eventually

from rtproof import profiles
from rtproof.core.errors import TargetError, UserError
from rtproof.experiment import profile_setup, run_request, target_runner
from rtproof.experiment.guest_runner import target_options_for_profile, with_lab_kernel
from rtproof.lab import kernel_catalogue
from rtproof.profiles import OtherTool, run_options
from rtproof.run import session
from rtproof.vm.kernel_files import Kernel

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
    found = list(target_runner.run_programs(profile, Path(agent()), latency))
    assert [label for label, _ in found] == ["user task", "kernel task", "timer IRQ"]
    assert "-T2 -q" in found[0][1].read_text()
    assert "-t1" in found[1][1].read_text()
    assert "latency -h -H10000 -P99 -T2 -q (user task), 2 s" in capsys.readouterr().err


def test_what_is_not_here_is_said_and_left_out(latency: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = profiles.load("bootlin-xenomai")
    absent = (OtherTool("a", ("latency", "{seconds}"), str(latency / "none")), OtherTool("b", ("no-such-program",)))
    assert list(target_runner.run_programs(_with(profile, absent, profile.cells), Path(agent()), latency)) == []
    said = capsys.readouterr().err
    assert f"latency (a) was not run: there is no {latency / 'none'}" in said
    assert "there is no program 'no-such-program'" in said


def test_a_tool_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "EXTRA_TIME_S", 0)
    with pytest.raises(TargetError, match=r"^sleep did not end within 1 s$"):
        session.run_tool(["sleep", "600"], 1, tmp_path / "said")


def test_loads_run_meanwhile_and_are_gone_afterwards() -> None:
    with session.under_loads(Path(agent()), ["--load", OURS]):
        assert _running()
    assert eventually(lambda: not _running())


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


# Names of the lab's kernels where the target qemu takes files.


FETCHED = Kernel("x86_64", Path("/cache/vmlinuz"), Path("/cache/lib/modules/6.1"), "6.1", "abc")


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_catalogue, "resolve_kernel", lambda name, folder, say: FETCHED)
    monkeypatch.setattr(kernel_catalogue, "module_for_kernel", lambda name, say: Path(f"/cache/{name}/rtproof.ko"))


@pytest.mark.usefixtures("catalogue")
def test_a_name_becomes_the_files_of_the_kernel() -> None:
    found = with_lab_kernel("qemu", {"kernel": "debian-6.1", "cpus": "1"}, "timer")
    assert found == {"kernel": "/cache/vmlinuz", "modules": "/cache/lib/modules/6.1", "cpus": "1"}


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("options", "probe", "inserted"),
    [
        ({}, "kernel", "/cache/debian-6.1/rtproof.ko"),
        ({}, "kernel:key=1", "/cache/debian-6.1/rtproof.ko"),
        ({"insert": "loop,rtproof"}, "", "loop,/cache/debian-6.1/rtproof.ko"),
        ({"insert": "loop"}, "kernel", "loop"),
    ],
)
def test_our_module_is_built_where_it_is_wanted(options: dict[str, str], probe: str, inserted: str) -> None:
    assert with_lab_kernel("qemu", {"kernel": "debian-6.1", **options}, probe)["insert"] == inserted


HAS = ("veth", "i2c-piix4", "lm75")
OURS_CLI_GUESTS = "/cache/debian-6.1/rtproof.ko"


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("name", "inserted"),
    [
        ("akamina", f"{OURS_CLI_GUESTS},veth"),
        ("bootlin-gpio", f"{OURS_CLI_GUESTS},veth"),
        ("simple-rt-app", "veth,i2c-piix4,lm75"),
        ("toradex", "veth"),
    ],
)
def test_a_guest_gets_what_a_profile_needs(name: str, inserted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtproof.experiment.guest_runner.has_module", lambda kernel, name: name in HAS)
    profile = profiles.load(name)
    options = target_options_for_profile("qemu", {"kernel": "debian-6.1"}, profile)
    assert options["insert"] == inserted
    assert options.get("setup", "").splitlines() == list(profile.guest.setup)
    own = {"kernel": "debian-6.1", "insert": "loop", "setup": "true"}
    told = target_options_for_profile("qemu", own, profile)
    assert (told["insert"], told["setup"]) == ("loop", "true")
    assert target_options_for_profile("local", own, profile) == own


def test_in_a_guest_something_stands_for_what_only_the_user_could_name() -> None:
    asked = run_request.ProfileRequest("bootlin-gpio", (("in", "5"),), (), {"duration": "5s"})
    (cell,) = profile_setup.requested_profile(asked, in_guest=True).cells
    assert run_options(cell)["probe"] == "gpio:chip=rtproof-loop,in=5,out=6,edge=both"
    assert cell.loads == ("doload:messages=11000,entries=7000", "mmap:rate=200")
    with pytest.raises(UserError, match=r"can't know chip, .*; 'rtproof lab profile bootlin-gpio' measures in a guest"):
        profile_setup.requested_profile(asked)
