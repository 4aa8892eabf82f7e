# SPDX-License-Identifier: Apache-2.0
"""The target labgrid: a coordinator, an exporter and two places on loopback, and a real sshd behind them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from board_runs import ENDED_WELL, ended, rtproof, start, wait_until, wait_until_measured
from board_servers import Board, board, processes
from labgrid_lab import Lab, lab

from rtproof.boards.labgrid_place import OVER, last_mark, new_mark
from rtproof.core.errors import TargetError
from rtproof.record.reading import open_record
from rtproof.targets import labgrid as target

pytestmark = pytest.mark.slow
QUIET = ("--no-report", "-q")
ALICE = {**os.environ, "LG_USERNAME": "alice", "LG_HOSTNAME": "attic"}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    with board(tmp_path_factory.mktemp("machine"), "sshd") as made:
        yield made


@pytest.fixture(scope="module")
def desk(machine: Board, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab"), machine) as made:
        yield made


def keepers_of(pid: int) -> list[int]:
    """The keepers that a process has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    command_lines = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
    return [child for child, line in command_lines.items() if b"labgrid_place import keep" in line]


@contextmanager
def started(*words: str) -> "Iterator[subprocess.Popen[str]]":
    """It is killed if it is still there at the end, with its keepers."""
    process = start(*words)
    try:
        yield process
    finally:
        if process.poll() is None:
            for pid in keepers_of(process.pid):
                os.kill(pid, signal.SIGKILL)
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def assert_one_sentence(done: "subprocess.CompletedProcess[str]", *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert [word for word in words if word not in done.stderr] == [], done.stderr


def as_alice(desk: Lab, *words: str) -> None:
    """What another user does with labgrid's own client."""
    command = [sys.executable, "-m", "labgrid.remote.client", "-x", desk.session.address, *words]
    done = subprocess.run(command, env=ALICE, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def alice_holds(desk: Lab, place: str) -> Iterator[None]:
    as_alice(desk, "-p", place, "acquire")
    try:
        yield
    finally:
        if desk.holder(place) == "attic/alice":
            as_alice(desk, "-p", place, "release")


def end_reason(folder: Path) -> str:
    record = open_record(folder / "run.rtrec")
    assert record.end
    return record.end.reason.name


def test_two_runs_on_two_places_at_once(desk: Lab, machine: Board, tmp_path: Path) -> None:
    words = ("--duration", "2s", *QUIET, "-o")
    with (
        started("run", *desk.at("desk-a"), *words, str(tmp_path / "a")) as first,
        started("run", *desk.at("desk-b"), *words, str(tmp_path / "b")) as second,
    ):
        for process in (first, second):
            ended(process)
    for name in ("a", "b"):
        assert end_reason(tmp_path / name) == "AS_ASKED"
        assert not (tmp_path / name / "unfinished.json").exists()
    assert "GET /power-1 " in desk.switch.read_text(), "desk-b got no power"
    assert desk.holder("desk-a") == desk.holder("desk-b") == ""
    assert not [line for line in processes(machine.cable.namespace) if "rtproof-agent" in line]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_held_place_is_refused_and_a_signal_releases_it(desk: Lab, tmp_path: Path, number: signal.Signals) -> None:
    with started("run", *desk.at("desk-a"), "--duration", "1h", *QUIET, "-o", str(tmp_path / "run")) as first:
        wait_until_measured(first, tmp_path / "run")
        holder = desk.holder("desk-a")
        assert holder == desk.session.owner
        if number == signal.SIGINT:
            refused = rtproof("run", *desk.at("desk-a"), "--duration", "1s", *QUIET)
            assert_one_sentence(refused, "desk-a", f"held by {holder}", "another run of rtproof")
            assert desk.holder("desk-a") == holder
        first.send_signal(number)
        ended(first)
    assert end_reason(tmp_path / "run") == "INTERRUPTED"
    assert desk.holder("desk-a") == ""


def test_a_killed_client_leaves_no_place_acquired_for_longer_than_its_time(desk: Lab, tmp_path: Path) -> None:
    words = ("--duration", "1h", *QUIET, "-o", str(tmp_path / "run"))
    with started("run", *desk.at("desk-a", "release-after=4s"), *words) as client:
        wait_until_measured(client, tmp_path / "run")
        (keeper,) = keepers_of(client.pid)
        os.killpg(client.pid, signal.SIGKILL)
        client.wait(600)
    try:
        wait_until(lambda: not desk.holder("desk-a"), "the place is not released")
        wait_until(lambda: not Path(f"/proc/{keeper}/exe").exists(), "the keeper does not end")
    finally:
        with suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGKILL)
    ended(start("stop", str(tmp_path / "run"), "--no-report"))
    assert end_reason(tmp_path / "run") == "INTERRUPTED"
    assert desk.holder("desk-a") == ""


def test_a_run_that_is_left_keeps_its_reserved_place_until_it_is_fetched(
    desk: Lab, machine: Board, tmp_path: Path
) -> None:
    words = desk.at("+", "reserve=board=beta shelf=top")
    left = rtproof("run", *words, "--duration", "1h", "--detach", "-o", str(tmp_path / "run"))
    assert left.returncode == 0, left.stderr
    assert desk.holder("desk-b") == desk.session.owner
    assert_one_sentence(
        rtproof("run", *words, "--duration", "1s", *QUIET),
        "no labgrid place with the tags board=beta shelf=top is free",
    )
    with started("attach", str(tmp_path / "run"), "--no-report") as attached:
        space = machine.cable.namespace
        wait_until(lambda: any("background follow" in line for line in processes(space)), "nobody follows the run")
        refused = rtproof("attach", str(tmp_path / "run"))
        assert_one_sentence(refused, "follows this run")
        assert desk.holder("desk-b") == desk.session.owner, "the first one still needs the place"
        ended(attached, interrupt=True)
    assert desk.holder("desk-b") == ""
    assert not desk.place("desk-b").reservation
    assert not [line for line in processes(machine.cable.namespace) if "rtproof-agent" in line]


def test_a_place_of_somebody_else_is_waited_for_as_long_as_asked(desk: Lab, tmp_path: Path) -> None:
    words = ("--duration", "1s", *QUIET, "-o", str(tmp_path / "run"))
    with alice_holds(desk, "desk-a"):
        assert_one_sentence(rtproof("run", *desk.at("desk-a"), *words), "desk-a is held by attic/alice")
        assert not (tmp_path / "run").exists()
        with started("run", *desk.at("desk-a", "wait=10min"), *words) as waiting:
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(3)
            assert desk.holder("desk-a") == "attic/alice"
            as_alice(desk, "-p", "desk-a", "release")
            ended(waiting)
    assert desk.holder("desk-a") == ""


def test_ctrl_c_while_waiting_cancels_the_reservation(desk: Lab) -> None:
    with (
        alice_holds(desk, "desk-a"),
        started("run", *desk.at("+", "reserve=board=alpha", "wait=1h"), "--duration", "1s") as waiting,
    ):
        ours = desk.session.owner

        def reserved(least_s: float = 0) -> bool:
            """Each time that the client asks after its reservation, which it has got then, 60 s begin anew."""
            found = desk.session.ask("GetReservations").reservations
            return any(each.owner == ours and each.timeout - each.created > least_s for each in found)

        wait_until(lambda: reserved(60.5), "there is no reservation that anybody waits for")
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(600) == 130
        assert not reserved()


STRATEGY = """
import attr
from labgrid import target_factory
from labgrid.strategy import Strategy

@target_factory.reg_driver
@attr.s(eq=False)
class OneState(Strategy):
    bindings = {"ssh": "SSHDriver"}
    def transition(self, status):
        if status != "shell":
            raise Exception(f"there is no state {status}")
        open("reached", "a").write(status)
"""
ENVIRONMENT = """
targets:
  main:
    resources:
      RemotePlace: {name: desk-b}
    drivers:
      SSHDriver: {keyfile: KEY}
      OneState: {}
imports: [strategy.py]
"""


def test_an_environment_gives_the_place_the_key_and_the_strategy(
    desk: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    key = desk.options[-1].removeprefix("key=")
    (tmp_path / "lab.yaml").write_text(ENVIRONMENT.replace("KEY", key))
    (tmp_path / "strategy.py").write_text(STRATEGY)
    coordinator = desk.options[:4]

    def run(*options: str) -> "subprocess.CompletedProcess[str]":
        words = (word for each in ("config=lab.yaml", *options) for word in ("--target-option", each))
        return rtproof("run", *coordinator, *words, "--duration", "1s", *QUIET, "-o", "run")

    assert_one_sentence(run("state=moon"), "there is no state moon")
    assert desk.holder("desk-b") == ""
    assert_one_sentence(run("role=other"), "no target other", "main")
    done = run("state=shell")
    assert done.returncode in ENDED_WELL, done.stderr
    assert (tmp_path / "reached").read_text() == "shell"
    assert end_reason(tmp_path / "run") == "AS_ASKED"
    assert desk.holder("desk-b") == ""


def test_a_target_of_labgrids_own_fixture_becomes_a_board(desk: Lab, machine: Board) -> None:
    import labgrid
    from labgrid.resource import NetworkService

    theirs = labgrid.Target("main")
    NetworkService(theirs, name=None, address=machine.cable.address, username="root")
    key = desk.options[-1].removeprefix("key=")
    with target.board_of(theirs, {"key": key}) as found:
        assert found.machine() == os.uname().machine
    with pytest.raises(TargetError, match="neither a NetworkService nor a serial port"):
        target.board_of(labgrid.Target("bare"), {}).__enter__()


def test_what_cannot_work_is_one_sentence(desk: Lab) -> None:
    short = ("--duration", "1s")
    assert_one_sentence(rtproof("run", *desk.at("desk-x"), *short), "no labgrid place 'desk-x'", "desk-a, desk-b")
    assert_one_sentence(rtproof("run", *desk.at("+", "reserve=board=gamma"), *short), "the tags board=gamma")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        words = ("--target", "labgrid", "--target-option", "place=a", "--target-option", f"coordinator={address}")
        assert_one_sentence(rtproof("run", *words, *short), f"no labgrid coordinator answers at {address}")
    assert_one_sentence(rtproof("run", *desk.options, *short), "place=NAME", "config=FILE")
    assert_one_sentence(rtproof("run", *desk.at("desk-a", "dir=/proc/nothing"), *short), "run in /proc/nothing")
    assert desk.holder("desk-a") == ""


def test_a_later_mark_takes_over_until_it_is_void() -> None:
    first = new_mark(["attic/alice"])
    second = new_mark(["attic/alice", first])
    assert last_mark(["attic/alice"]) == ""
    assert last_mark([first, second]) == last_mark([second, first]) == second
    assert last_mark([first, second, f"{second}{OVER}"]) == first
