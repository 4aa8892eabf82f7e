# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --generator``: what it refuses, what it asks of the two agents, and what it leaves."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rtproof.cli import option_values
from rtproof.cli.main import main
from rtproof.experiment import target_runs
from rtproof.experiment.run_request import Board, RunRequest

PROBE = ("--probe", "gpio:chip=0,in=3,out=2")
PAIR = ("--generator", "local", "--generator-lines", "chip=0,in=5,out=6")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> int:
    return main(["run", "--output", "r", *words])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*PROBE, "--generator", "local"), "--generator needs the lines of that board: --generator-lines"),
        ((*PROBE, "--generator-lines", "chip=0"), "--generator-option and --generator-lines need a --generator"),
        (PAIR, "--generator needs --probe gpio with the lines that answer"),
        ((*PAIR, "--probe", "timer"), "--generator needs --probe gpio with the lines that answer"),
        ((*PAIR, "--probe", "gpio:in=3,out=2,pattern=no"), "leave pattern= out"),
        ((*PAIR, "--probe", "gpio:in=3,out=2"), "which sysfs does not tell: say chip="),
        ((*PROBE, *PAIR, "--method", "wire"), "with --generator the method is respond"),
        ((*PROBE, *PAIR, "--detach"), "--generator does not go with --detach"),
        ((*PROBE, *PAIR, "--profile", "akamina"), "--generator does not go with --profile"),
        ((*PROBE, *PAIR, "--repeat", "3"), "--generator does not go with --repeat"),
        ((*PROBE, *PAIR, "--until-decided", "--limit", "1ms"), "--generator does not go with --until-decided"),
        ((*PROBE, *PAIR, "--explain"), "--generator does not go with --explain"),
        ((*PROBE, *PAIR, "--observer"), "--generator does not go with --observer"),
        ((*PROBE, *PAIR, "--trace", "on"), "--generator does not go with --trace"),
        ((*PROBE, *PAIR, "--limit", "5s", "--at-most", "1/h"), "a limit of 5s cannot be judged with --generator"),
        ((*PROBE, "--generator", "nowhere", *PAIR[2:]), "nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    words: Sequence[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert not Path("r").exists()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[RunRequest]:
    """What the command asks for, instead of a run."""
    seen: list[RunRequest] = []

    def note(wanted: RunRequest) -> int:
        seen.append(wanted)
        return 0

    monkeypatch.setattr(target_runs, "run_once", note)
    return seen


def generator_of(responder: RunRequest) -> tuple[Board, tuple[str, ...]]:
    assert responder.generator
    return responder.generator


def value_of(arguments: Sequence[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def test_each_side_gets_its_own_options(asked: list[RunRequest]) -> None:
    words = (*PAIR, "--generator-option", "host=x", "--period", "30ms", "--duration", "1min", "--load", "sched")
    assert run(*PROBE, *words, "--priority", "70", "--warmup", "2s") == 0
    (responder,) = asked
    board, generator = generator_of(responder)
    assert value_of(responder.arguments, "--probe") == "gpio:chip=0,in=3,out=2"
    assert value_of(generator, "--probe") == "gpio:chip=0,in=5,out=6,pattern=yes"
    assert (value_of(responder.arguments, "--method"), value_of(generator, "--method")) == ("respond", "generate")
    assert value_of(responder.arguments, "--priority") == "70"
    assert "--load" in responder.arguments
    assert not {"--load", "--priority"} & set(generator)
    for side in (responder.arguments, generator):
        assert (value_of(side, "--period"), value_of(side, "--warmup")) == ("30ms", "2s")
    assert value_of(generator, "--duration") == "1min"
    assert board[1] == (("host", "x"),)
    assert responder.length_ns == 60_000_000_000


def test_the_responder_is_asked_for_longer_than_the_generator(asked: list[RunRequest]) -> None:
    """So it cannot end first, and ends by itself where nobody is left to tell it."""
    assert run(*PROBE, *PAIR, "--period", "30ms", "--samples", "1000") == 0
    (responder,) = asked
    _, generator = generator_of(responder)
    assert value_of(generator, "--samples") == "1000"
    assert "--samples" not in responder.arguments
    longest_ns = 2 * 1000 * 30_000_000 + 1_000_000_000 + option_values.LONGER_NS
    assert value_of(responder.arguments, "--duration") == f"{longest_ns // 1_000_000_000}s"


def test_a_board_without_lines_is_a_sentence_and_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """This machine as both boards: it has no such chip."""
    assert run("--probe", "gpio:chip=absent,in=3,out=2", *PAIR, "--duration", "1s") == 2
    said = capsys.readouterr().err
    assert "GPIO" in said
    assert "Traceback" not in said
    assert list(Path().iterdir()) == []
