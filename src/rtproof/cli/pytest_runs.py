# SPDX-License-Identifier: Apache-2.0
"""``rtproof.run()`` of the pytest plugin: take the options of ``rtproof run`` as arguments, measure and judge."""

import fcntl
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import click

from rtproof import targets
from rtproof.agents.build import cache_dir
from rtproof.api import measuring
from rtproof.boards.board_target import board_options
from rtproof.cli import option_values
from rtproof.cli.commands.run import command
from rtproof.cli.pytest_errors import LABGRID_FIXTURE, MeasurementError
from rtproof.core import files, plugins
from rtproof.core.errors import UserError
from rtproof.core.printable import one_line
from rtproof.experiment import printed_runs, target_runner, target_runs
from rtproof.experiment.run_request import RunRequest
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Analysis, State
from rtproof.summary.quantiles import quantiles
from rtproof.targets import Target

BOUND = {
    "target": "give pytest --rtproof-target, or set rtproof_target in its ini file",
    "target_option": "give pytest --rtproof-target-option, or set rtproof_target_options in its ini file",
    "output": "give pytest --rtproof-output, or set rtproof_output in its ini file",
}
"""Options that a test may not give, because they are of the board and not of the test; and where they belong."""
FOR_THE_SHELL = (
    *("json", "verbose", "quiet", "detach", "profile", "set", "given", "repeat", "abba", "order_seed"),
    *("generator", "generator_option", "generator_lines"),
)
"""Options about what is printed, or that measure more than one run on one board."""
FIGURES = ("n", "missed", "exceeded_count", "episodes", "measured_s", "more_s", "worst_us")
"""Attributes of a result that JUnit's file gets as properties."""
LABGRID = "labgrid"
SHARES = (0.5, 0.99, 0.999)
MOST_OF_NAME = 100
"""Characters of a test's name in the name of its run folder: file systems take 255."""
SHARED_BY_ALL = "simulated"
"""A target that takes no machine's time, so tests on it need not wait for each other."""


class RunResult:
    """What a run showed. folder: of the run; page: its HTML report, None if it was refused.

    verdict: HELD, EXCEEDED, PROVEN, REFUTED, UNDECIDED, INVALID, or NOT ASKED if no limit was given. exceeded: whether
    a limit is known to have been exceeded, whatever the verdict. n, missed: activations that ran, of all threads, and
    due times for which a thread never ran. worst_us: None if nothing ran, or if the values are no times. episodes,
    exceeded_count, measured_s: of the limit that decides. more_s: how much longer an UNDECIDED run takes to PROVEN
    without an episode; None if more time does not help. sentence: the verdict, its reason, and how much longer.
    """

    def __init__(self, folder: Path, page: Path | None, analysis: Analysis, interrupted: bool = False) -> None:
        verdict, pooled = analysis.verdict, analysis.pooled
        self.folder, self.page, self.interrupted = folder, page, interrupted
        self.verdict = verdict.state.value
        self.held = verdict.state is State.HELD
        self.proven = verdict.state is State.PROVEN
        self.refuted = verdict.state is State.REFUTED
        self.undecided = verdict.state is State.UNDECIDED
        self.invalid = verdict.state is State.INVALID
        self.exceeded = any(each.exceeded for each in analysis.verdicts)
        self.n, self.missed = pooled.obtained, pooled.never_ran
        seen = bool(pooled.observed.count) and pooled.series.unit == "ns"
        self.worst_us = pooled.observed.max / 1_000 if seen else None
        self.episodes, self.exceeded_count = len(verdict.episodes), verdict.exceeded_count
        self.measured_s = (verdict.measured_ns or 0) / 1e9
        self.more_s = verdict.more_ns / 1e9 if self.undecided and verdict.more_ns else None
        said = [verdict_sentences.claim_answer(verdict), verdict_sentences.short_answer(verdict)]
        self.sentence = one_line(f"{self.verdict}: {' '.join(filter(None, said))}")
        self._quantiles = [each.value for each in quantiles(pooled, shares=SHARES)] if seen else []

    def lines(self) -> list[str]:
        return [self.sentence, f"page: {self.page}" if self.page else f"run: {self.folder}"]

    def __bool__(self) -> bool:
        """``assert rtproof.run(...)`` without ``.proven`` would pass whatever the verdict is."""
        raise MeasurementError(
            f"a run is neither true nor false: assert run.held, for example; this one is {self.verdict}"
        )

    def __repr__(self) -> str:
        """Short enough for an assertion that pytest explains."""
        return f"<{self.verdict}, {self.page or self.folder}>"

    def properties(self) -> Iterator[tuple[str, str]]:
        """Name, with the unit, and text of each figure."""
        yield "verdict", self.verdict
        yield "sentence", self.sentence
        named = zip(("median_us", "p99_us", "p99_9_us"), self._quantiles, strict=False)
        figures = {
            **{name: getattr(self, name) for name in FIGURES},
            **{name: None if value is None else value / 1_000 for name, value in named},
        }
        yield from ((name, f"{figure:.12g}") for name, figure in figures.items() if figure is not None)
        yield "run", str(self.folder)
        if self.page:
            yield "page", str(self.page)


def measure(
    target_words: Sequence[str], runs: Path, test: str, options: Mapping[str, Any], labgrid_target: Any
) -> tuple[RunResult, str]:
    """One run, and a sentence if the agent failed after it had measured.

    target_words: its name, then its options. runs: the folder of all runs. test: the test's name. labgrid_target: of
    labgrid's fixture, None without it. Any error of the user's or the target's means that nothing was measured.
    """
    name, *of_target = target_words
    name = LABGRID if name == LABGRID_FIXTURE else name
    words = [*option_words(options), f"--target={name}", *(f"--target-option={each}" for each in of_target)]
    context = command.make_context("rtproof", list(words))  # which takes its words out of the list
    asked = option_values.take_run_request(context.params, ("rtproof", "run", *words))
    with _board_for_this_test(asked, labgrid_target), _opened(asked, labgrid_target) as target:
        called = re.sub(r"[^\w=-]+", "-", test.replace(".py::", "-"), flags=re.ASCII)[-MOST_OF_NAME:].strip("-")
        output = files.free_path(runs / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{called}")
        asked = replace(asked, output=output)
        folder, outcome = target_runs.measure_on(target, asked, target_runs.watch_of(asked))
    page, analysis = printed_runs.judge(asked, folder.absolute())
    result = RunResult(folder.absolute(), page, analysis, outcome.interrupted)
    failure = target_runner.agent_failure(outcome)
    return result, f"{failure}; what it measured: {' '.join(result.lines())}" if failure else ""


def usage_sentence(error: Exception) -> str:
    """Of an option that click refuses; "" for any other error."""
    if isinstance(error, click.exceptions.Exit):  # click takes --explain=--help for --help
        return "rtproof.run() takes no help"
    if not isinstance(error, click.ClickException):
        return ""
    return f"rtproof.run(): {one_line(error.format_message().rstrip('.'))}"


def option_words(options: Mapping[str, Any]) -> list[str]:
    """The words of the command line for arguments by name. RtproofError for an argument that has no meaning here."""
    for name in options:
        if name in BOUND:
            raise UserError(f"rtproof.run() takes no {name}: {BOUND[name]}")
        if name in FOR_THE_SHELL:
            raise UserError(f"rtproof.run() takes no {name}: it measures one run and prints nothing")
    return [word for name, value in options.items() for word in measuring.option_words(name, value)]


def _opened(asked: RunRequest, labgrid_target: Any) -> AbstractContextManager[Target]:
    if labgrid_target is None:
        return target_runs.open_target_for(asked)
    module = plugins.load_plugin(targets, LABGRID)
    options = plugins.checked_options(f"the target {LABGRID}", module.OPTIONS, asked.target_options)
    opened: AbstractContextManager[Target] = module.board_of(labgrid_target, options)
    return opened


@contextmanager
def _board_for_this_test(asked: RunRequest, labgrid_target: Any) -> Iterator[None]:
    """Wait while another test of this user measures the same board, because each would be the other's load."""
    if asked.target == SHARED_BY_ALL:
        yield
        return
    place = cache_dir().parent / "boards" / f"{board_key(asked, labgrid_target)}.lock"
    with _open_lock(place) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            click.echo(f"waits for another test that measures the target {asked.target}", err=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _open_lock(place: Path) -> TextIO:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        return place.open("w")
    except OSError as error:
        raise UserError(
            f"cannot make {place}, the lock that keeps other tests off this board: {error.strerror}; "
            "set XDG_CACHE_HOME to a folder in which files can be written"
        ) from None


def board_key(asked: RunRequest, labgrid_target: Any) -> str:
    """The same for two requests that measure the same board, as far as their options tell."""
    if labgrid_target is not None:
        environment = getattr(getattr(labgrid_target, "env", None), "config_file", "")
        words = [LABGRID, str(getattr(labgrid_target, "name", "")), str(environment)]
    else:
        ways = ("user", *board_options())
        words = [asked.target, *sorted("=".join(each) for each in asked.target_options if each[0] not in ways)]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
