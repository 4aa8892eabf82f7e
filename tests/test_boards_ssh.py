# SPDX-License-Identifier: Apache-2.0
"""Runs over ssh, on real servers: the same record as here, links that break, hosts that are killed, and refusals."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from board_runs import assert_whole, ended, rtproof, start, wait_until_grown, wait_until_measured
from board_servers import Board, board, processes

from rtproof.record.reading import open_record

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["sshd", "dropbear"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    with board(tmp_path_factory.mktemp(request.param), request.param) as made:
        yield made


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """Where the server does not matter."""
    with board(tmp_path_factory.mktemp("machine"), "sshd") as made:
        yield made


def contents(folder: Path) -> dict[str, object]:
    """What a record has, without the numbers that differ between any two runs."""
    record = open_record(folder / "run.rtrec")
    assert record.end is not None
    return {
        "facts": {(fact.moment, fact.key) for fact in record.facts if not fact.key.startswith("thread")},
        "series": [(each.thread, each.cpu) for each in record.series],
        "files": {(each.moment, each.path) for each in record.files},
    }


def test_a_run_over_ssh_leaves_what_a_run_here_leaves(server: Board, tmp_path: Path) -> None:
    words = ("--duration", "2s", "--load", "mem", "--no-report", "-q")
    ended(start("run", *server.options, *words, "-o", str(tmp_path / "there")))
    ended(start("run", *words, "-o", str(tmp_path / "here")))
    there, here = contents(tmp_path / "there"), contents(tmp_path / "here")
    assert there["series"] == here["series"]
    assert there["facts"] == here["facts"]
    assert not (tmp_path / "there" / "unfinished.json").exists()
    assert json.loads((tmp_path / "there" / "run.json").read_text())["target"] == "ssh"
    assert not [line for line in processes(server.cable.namespace) if "rtproof-agent" in line]


def started(server: Board, *words: str) -> "subprocess.Popen[str]":
    return start("run", *server.options, *words, "--no-report", "-q")


def test_a_user_without_privileges_measures_too_and_with_sudo_as_root_does(machine: Board, tmp_path: Path) -> None:
    words = ("--duration", "1s", "--no-report", "-q")
    without = rtproof("run", *machine.as_user(), *words, "-o", str(tmp_path / "plain"))
    assert without.returncode == 2
    assert "--allow-unprivileged" in without.stderr
    assert len(without.stderr.splitlines()) == 1
    ended(start("run", *machine.as_user(), *words, "--allow-unprivileged", "-o", str(tmp_path / "allowed")))
    ended(start("run", *machine.as_user(), "--target-option", "sudo=sudo -n", *words, "-o", str(tmp_path / "sudo")))
    facts = open_record(tmp_path / "sudo" / "run.rtrec").facts
    assert {fact.value for fact in facts if fact.key == "policy"} == {"fifo"}


def test_a_command_without_a_record_says_what_it_does_there(machine: Board) -> None:
    done = rtproof("undo", *machine.options)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing to restore" in done.stdout or "a killed run left it" in done.stdout  # of another test


ENDLESS = ("--duration", "1h", "--checkpoint", "500ms")


def test_a_broken_link_costs_nothing(machine: Board, tmp_path: Path) -> None:
    run = started(machine, *ENDLESS, "-o", str(tmp_path / "run"))
    wait_until_measured(run, tmp_path / "run")
    machine.cable.pull()
    seconds = [wait_until_grown(machine.cache) for _ in range(5)]
    machine.cable.plug()
    ended(run, interrupt=True)
    assert_whole(tmp_path / "run", seconds[-1], "INTERRUPTED")


def test_the_run_of_a_killed_host_is_taken_up_by_another(machine: Board, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = started(machine, *ENDLESS, "-o", str(folder))
    wait_until_measured(run, folder)
    run.kill()
    run.communicate()
    seconds = wait_until_grown(machine.cache)
    ended(start("stop", str(folder), "--no-report"))
    assert_whole(folder, seconds, "INTERRUPTED")
    assert not (folder / "unfinished.json").exists()
    again = rtproof("attach", str(folder))
    assert again.returncode == 2
    assert "goes on on a board" in again.stderr


def test_a_host_that_was_killed_at_the_very_end_is_followed_by_one_that_has_all(machine: Board, tmp_path: Path) -> None:
    """The record is here and the run is removed from the board; the folder alone does not know it."""
    folder, unfinished = tmp_path / "run", tmp_path / "run" / "unfinished.json"
    ended(started(machine, "--duration", "2s", "--detach", "-o", str(folder)))
    before = unfinished.read_bytes()
    ended(start("attach", str(folder), "--no-report"))
    log = (folder / "agent.log").read_bytes() if (folder / "agent.log").exists() else None
    unfinished.write_bytes(before)
    assert "there is no run in" in ended(start("attach", str(folder), "--no-report"))
    assert_whole(folder, 2)
    assert not unfinished.exists()
    assert ((folder / "agent.log").read_bytes() if log is not None else None) == log
    (folder / "run.rtrec").unlink()
    unfinished.write_bytes(before)
    lost = rtproof("attach", str(folder))
    assert lost.returncode == 2
    assert "there is no run in" in lost.stderr
    assert len(lost.stderr.splitlines()) == 1


def test_a_second_host_is_refused_while_the_first_follows(machine: Board, tmp_path: Path) -> None:
    run = started(machine, "--duration", "1h", "-o", str(tmp_path / "run"))
    wait_until_measured(run, tmp_path / "run")
    refused = rtproof("attach", str(tmp_path / "run"))
    assert refused.returncode == 2
    assert "follows this run" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    ended(run, interrupt=True)
    assert (tmp_path / "run" / "run.rtrec").exists()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--target-option", "port=1"), "Connection refused"),
        (("--target-option", "user=nobody-here"), "Permission denied"),
        (("--target-option", "dir=/proc/nothing"), "nothing can be kept or run in /proc/nothing"),
        (("--target-option", "sudo=no-such-sudo"), "no-such-sudo"),
    ],
)
def test_what_cannot_work_is_one_sentence(machine: Board, tmp_path: Path, more: tuple[str, ...], sentence: str) -> None:
    refused = rtproof("run", *machine.options, *more, "--duration", "1s", "-o", str(tmp_path / "run"))
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert len(refused.stderr.splitlines()) == 1, refused.stderr
    assert not (tmp_path / "run").exists()
