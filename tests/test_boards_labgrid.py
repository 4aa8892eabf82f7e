# SPDX-License-Identifier: Apache-2.0
"""The target labgrid: a coordinator, an exporter and two places on loopback, and a real sshd behind them."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from board_runs import rtproof
from board_servers import Board, board, is_followed, processes
from labgrid_lab import PROMPT, Lab, console_port, lab, wait_until

from rtproof.boards import labgrid_coordinator
from rtproof.boards.labgrid_coordinator import last_mark, new_mark
from rtproof.core.errors import TargetError, UserError
from rtproof.record.reading import open_record
from rtproof.targets import _labgrid_shell
from rtproof.targets import labgrid as target

pytestmark = pytest.mark.slow
ENDED_WELL = (0, 3)
"""A run that is ended at once may have measured nothing, which is INVALID. That is no matter of its place."""
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
    return [int(child) for child in children if b"labgrid_keeper" in Path(f"/proc/{child}/cmdline").read_bytes()]


@contextmanager
def started(*words: str) -> "Iterator[subprocess.Popen[str]]":
    """rtproof in a process group of its own. It is killed if it is still there at the end, with its keepers."""
    command = [sys.executable, "-m", "rtproof", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            for pid in keepers_of(process.pid):
                os.kill(pid, signal.SIGKILL)
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_until_measured(process: "subprocess.Popen[str]", folder: Path) -> None:
    def measures() -> bool:
        assert process.poll() is None, process.communicate()
        return is_followed(folder)

    wait_until(measures, "the run does not begin", 120)


def assert_one_sentence(done: "subprocess.CompletedProcess[str]", *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert [word for word in words if word not in done.stderr] == [], done.stderr


def as_alice(desk: Lab, *words: str) -> None:
    """What another user does with labgrid's own client."""
    command = [sys.executable, "-m", "labgrid.remote.client", "-x", desk.coordinator.address, *words]
    done = subprocess.run(command, env=ALICE, capture_output=True, text=True, check=False, timeout=60)
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
            _, said = process.communicate(timeout=200)
            assert process.returncode == 0, said
    for name in ("a", "b"):
        assert end_reason(tmp_path / name) == "AS_ASKED"
        assert not (tmp_path / name / "unfinished.json").exists()
    assert desk.holder("desk-a") == desk.holder("desk-b") == ""
    assert not [line for line in processes(machine.cable.namespace) if "rtproof-agent" in line]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_held_place_is_refused_and_a_signal_releases_it(desk: Lab, tmp_path: Path, number: signal.Signals) -> None:
    with started("run", *desk.at("desk-a"), "--duration", "1h", *QUIET, "-o", str(tmp_path / "run")) as first:
        wait_until_measured(first, tmp_path / "run")
        holder = desk.holder("desk-a")
        assert holder == desk.coordinator.owner
        if number == signal.SIGINT:
            refused = rtproof("run", *desk.at("desk-a"), "--duration", "1s", *QUIET)
            assert_one_sentence(refused, "desk-a", f"held by {holder}", "another run of rtproof")
            assert desk.holder("desk-a") == holder
        first.send_signal(number)
        _, said = first.communicate(timeout=120)
        assert first.returncode in ENDED_WELL, said
    assert end_reason(tmp_path / "run") == "INTERRUPTED"
    assert desk.holder("desk-a") == ""


def test_a_killed_client_leaves_no_place_acquired_for_longer_than_its_time(desk: Lab, tmp_path: Path) -> None:
    release_after_s = 4
    words = ("--duration", "1h", *QUIET, "-o", str(tmp_path / "run"))
    with started("run", *desk.at("desk-a", f"release-after={release_after_s}s"), *words) as client:
        wait_until_measured(client, tmp_path / "run")
        (keeper,) = keepers_of(client.pid)
        os.killpg(client.pid, signal.SIGKILL)
        client.wait(30)
        killed = time.monotonic()
    try:
        assert desk.holder("desk-a") == desk.coordinator.owner
        wait_until(lambda: not desk.holder("desk-a"), "the place is not released")
        assert time.monotonic() - killed >= release_after_s - 1, "somebody else has released it"
        wait_until(lambda: not Path(f"/proc/{keeper}/exe").exists(), "the keeper does not end")
    finally:
        with suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGKILL)
    stopped = rtproof("stop", str(tmp_path / "run"), "--no-report")
    assert stopped.returncode in ENDED_WELL, stopped.stderr
    assert end_reason(tmp_path / "run") == "INTERRUPTED"
    assert desk.holder("desk-a") == ""


def test_the_run_of_a_killed_client_is_taken_up_with_its_place(desk: Lab, tmp_path: Path) -> None:
    with started("run", *desk.at("desk-a"), "--duration", "1h", *QUIET, "-o", str(tmp_path / "run")) as client:
        wait_until_measured(client, tmp_path / "run")
        (keeper,) = keepers_of(client.pid)
        os.killpg(client.pid, signal.SIGKILL)
        client.wait(30)
    try:
        stopped = rtproof("stop", str(tmp_path / "run"), "--no-report")
        assert stopped.returncode in ENDED_WELL, stopped.stderr
        assert desk.holder("desk-a") == ""
        wait_until(lambda: not Path(f"/proc/{keeper}/exe").exists(), "the keeper has nothing to do, and does not end")
    finally:
        with suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGKILL)


def test_a_run_that_is_left_keeps_its_reserved_place_until_it_is_fetched(
    desk: Lab, machine: Board, tmp_path: Path
) -> None:
    words = desk.at("+", "reserve=board=beta shelf=top")
    left = rtproof("run", *words, "--duration", "1h", "--detach", "-o", str(tmp_path / "run"))
    assert left.returncode == 0, left.stderr
    assert desk.holder("desk-b") == desk.coordinator.owner
    assert_one_sentence(
        rtproof("run", *words, "--duration", "1s", *QUIET),
        "board=beta shelf=top",
        f"desk-b by {desk.coordinator.owner} for another run of rtproof",
    )
    with started("attach", str(tmp_path / "run"), "--no-report") as attached:
        space = machine.cable.namespace
        wait_until(lambda: any("background follow" in line for line in processes(space)), "nobody follows the run", 120)
        refused = rtproof("attach", str(tmp_path / "run"))
        assert_one_sentence(refused, "follows this run")
        assert desk.holder("desk-b") == desk.coordinator.owner, "the first one still needs the place"
        attached.send_signal(signal.SIGINT)
        _, said = attached.communicate(timeout=120)
        assert attached.returncode in ENDED_WELL, said
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
            _, said = waiting.communicate(timeout=120)
            assert waiting.returncode == 0, said
    assert desk.holder("desk-a") == ""


def test_a_reservation_of_somebody_else_is_respected(desk: Lab) -> None:
    as_alice(desk, "reserve", "board=alpha")
    token = desk.place("desk-a").reservation
    try:
        refused = rtproof("run", *desk.at("desk-a"), "--duration", "1s")
        assert_one_sentence(refused, "desk-a is held by a reservation of attic/alice")
    finally:
        desk.coordinator.cancel(token)


def test_ctrl_c_while_waiting_cancels_the_reservation(desk: Lab) -> None:
    with (
        alice_holds(desk, "desk-a"),
        started("run", *desk.at("+", "reserve=board=alpha", "wait=1h"), "--duration", "1s") as waiting,
    ):
        ours = desk.coordinator.owner

        def reserved() -> bool:
            return any(each.owner == ours for each in desk.coordinator._ask("GetReservations").reservations)

        wait_until(reserved, "there is no reservation")
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) == 130
        assert not reserved()


def test_a_place_that_the_user_holds_already_stays_acquired(desk: Lab, tmp_path: Path) -> None:
    desk.coordinator.acquire("desk-a")
    try:
        done = rtproof("run", *desk.at("desk-a"), "--duration", "1s", *QUIET, "-o", str(tmp_path / "run"))
        assert done.returncode == 0, done.stderr
        assert desk.holder("desk-a") == desk.coordinator.owner
    finally:
        desk.coordinator.release("desk-a")


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


def test_an_environment_gives_the_place_the_key_and_the_strategy(desk: Lab, tmp_path: Path) -> None:
    key = desk.options[-1].removeprefix("key=")
    (tmp_path / "lab.yaml").write_text(ENVIRONMENT.replace("KEY", key))
    (tmp_path / "strategy.py").write_text(STRATEGY)
    coordinator = desk.options[:4]

    def run(*options: str) -> "subprocess.CompletedProcess[str]":
        words = (word for each in ("config=lab.yaml", *options) for word in ("--target-option", each))
        command = [
            sys.executable,
            "-m",
            "rtproof",
            "run",
            *coordinator,
            *words,
            "--duration",
            "1s",
            *QUIET,
            "-o",
            "run",
        ]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200)

    assert_one_sentence(run("state=moon"), "there is no state moon")
    assert desk.holder("desk-b") == ""
    assert_one_sentence(run("role=other"), "no target other", "main")
    done = run("state=shell")
    assert done.returncode == 0, done.stderr
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
    with (
        pytest.raises(TargetError, match="neither a NetworkService nor a console"),
        target.board_of(labgrid.Target("bare"), {}),
    ):
        pass


def test_a_console_becomes_a_board_and_labgrids_shell_works_after_it(tmp_path: Path) -> None:
    pytest.importorskip("labgrid", reason="labgrid is not installed (pip install 'rtproof[labgrid]')")
    import labgrid
    from labgrid.driver import SerialDriver, ShellDriver
    from labgrid.resource import NetworkSerialPort

    with console_port() as port:
        theirs = labgrid.Target("main")
        NetworkSerialPort(theirs, name=None, host="127.0.0.1", port=port, protocol="raw")
        SerialDriver(theirs, name=None)
        shell = ShellDriver(theirs, name=None, prompt=PROMPT, login_prompt="login: ", username="root")
        theirs.activate(shell)
        assert shell.run_check("echo before") == ["before"]
        with target.board_of(theirs, {"dir": str(tmp_path)}) as found:
            assert found.machine() == os.uname().machine
        assert shell.run_check("echo after") == ["after"]
        theirs.cleanup()


def test_the_power_of_a_place_is_switched_on(tmp_path: Path) -> None:
    pytest.importorskip("labgrid", reason="labgrid is not installed (pip install 'rtproof[labgrid]')")
    import labgrid
    from labgrid.resource import NetworkPowerPort

    asked: list[str] = []

    class Switch(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on the tests' output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Switch) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = labgrid.Target("place")
        assert not target._switch_on(place, {})
        where = f"http://127.0.0.1:{server.server_address[1]}/{{index}}/{{value}}"
        NetworkPowerPort(place, name=None, model="simplerest", host=where, index=4)
        assert target._switch_on(place, {})
        server.shutdown()
    assert asked == ["/4/1"]


def test_a_password_is_asked_of_a_program_that_nobody_else_can_read(tmp_path: Path) -> None:
    words = _labgrid_shell.with_password(tmp_path, r"it's \n $word")
    program = words[1].removeprefix("SSH_ASKPASS=")
    assert Path(program).stat().st_mode & 0o777 == 0o700
    assert subprocess.run([program], capture_output=True, check=True).stdout == b"it's \\n $word\n"


def test_what_cannot_work_is_one_sentence(desk: Lab) -> None:
    short = ("--duration", "1s")
    assert_one_sentence(rtproof("run", *desk.at("desk-x"), *short), "no labgrid place 'desk-x'", "desk-a, desk-b")
    tags = rtproof("run", *desk.at("+", "reserve=board=gamma"), *short)
    assert_one_sentence(tags, "no labgrid place has the tags board=gamma")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        words = ("--target", "labgrid", "--target-option", "place=a", "--target-option", f"coordinator={address}")
        assert_one_sentence(rtproof("run", *words, *short), f"no labgrid coordinator answers at {address}")
    nothing = rtproof("run", *desk.options, *short)
    assert_one_sentence(nothing, "place=NAME", "config=FILE")
    bad = rtproof("run", *desk.at("desk-a", "dir=/proc/nothing"), *short)
    assert_one_sentence(bad, "nothing can be kept or run in /proc/nothing")
    assert desk.holder("desk-a") == ""


def test_without_labgrid_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'rtproof\[labgrid\]'"), target.open_target({"place": "desk-a"}):
        pass


def test_a_later_mark_takes_over_until_it_is_void() -> None:
    first = new_mark(["attic/alice"])
    second = new_mark(["attic/alice", first])
    assert last_mark(["attic/alice"]) == ""
    assert last_mark([first, second]) == last_mark([second, first]) == second
    assert last_mark([first, second, f"{second}{labgrid_coordinator.OVER}"]) == first
