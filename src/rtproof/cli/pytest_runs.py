# SPDX-License-Identifier: Apache-2.0
"""``rtproof.run()`` of the pytest plugin: take the options of ``rtproof run`` as arguments, measure and judge."""

import fcntl
import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TextIO

import click

from rtproof import targets
from rtproof.agents.build import cache_dir
from rtproof.boards.board_target import board_options
from rtproof.cli import option_values
from rtproof.cli.commands.run import command
from rtproof.cli.pytest_errors import LABGRID_FIXTURE, MeasurementError
from rtproof.core import files, plugins
from rtproof.core.errors import UserError
from rtproof.core.phrases import unknown_name
from rtproof.core.printable import one_line
from rtproof.experiment import measured_results, target_runner, target_runs
from rtproof.experiment.run_request import ExperimentRequest, Measurement
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
LABGRID = "labgrid"
SHARES = (0.5, 0.99, 0.999)
MOST_OF_NAME = 100
"""Characters of a test's name in the name of its run folder: file systems take 255."""
SHARED_BY_ALL = "simulated"
"""A target that takes no machine's time, so tests on it need not wait for each other."""


class FailedRunError(Exception):
    """The agent failed, but left a record, which is judged. result: of the run."""

    def __init__(self, sentence: str, result: "RunResult") -> None:
        super().__init__(sentence)
        self.result = result


@dataclass(frozen=True, repr=False)
class RunResult:
    """What a run showed. folder: of the run; page: its HTML report, None if it was refused."""

    folder: Path
    page: Path | None
    analysis: Analysis
    interrupted: bool = False

    @property
    def verdict(self) -> str:
        """HELD, EXCEEDED, PROVEN, REFUTED, UNDECIDED, INVALID, or NOT ASKED if no limit was given."""
        return self.analysis.verdict.state.value

    @property
    def held(self) -> bool:
        return self.analysis.verdict.state is State.HELD

    @property
    def exceeded(self) -> bool:
        """Whether a limit is known to have been exceeded, whatever the verdict."""
        return any(verdict.exceeded for verdict in self.analysis.verdicts)

    @property
    def proven(self) -> bool:
        return self.analysis.verdict.state is State.PROVEN

    @property
    def refuted(self) -> bool:
        return self.analysis.verdict.state is State.REFUTED

    @property
    def undecided(self) -> bool:
        return self.analysis.verdict.state is State.UNDECIDED

    @property
    def invalid(self) -> bool:
        return self.analysis.verdict.state is State.INVALID

    @property
    def n(self) -> int:
        """Activations that ran, of all threads."""
        return self.analysis.pooled.obtained

    @property
    def missed(self) -> int:
        """Due times for which a thread never ran."""
        return self.analysis.pooled.never_ran

    @property
    def worst_us(self) -> float | None:
        """The largest latency of an activation that ran; None if none ran, or if the values are no times."""
        seen = self.analysis.pooled.observed
        return seen.max / 1_000 if seen.count and self._has_times else None

    @property
    def episodes(self) -> int:
        """Episodes above the limit that decides."""
        return len(self.analysis.verdict.episodes)

    @property
    def exceeded_count(self) -> int | None:
        """Due activations above the limit that decides, at least; None without a limit."""
        return self.analysis.verdict.exceeded_count

    @property
    def measured_s(self) -> float:
        return (self.analysis.verdict.measured_ns or 0) / 1e9

    @property
    def more_s(self) -> float | None:
        """How much longer an UNDECIDED run takes to PROVEN without an episode; None if more time does not help."""
        more_ns = self.analysis.verdict.more_ns if self.undecided else None
        return more_ns / 1e9 if more_ns else None

    @property
    def sentence(self) -> str:
        """The verdict, its reason, and for UNDECIDED how much longer it takes. One line."""
        verdict = self.analysis.verdict
        said = [verdict_sentences.claim_answer(verdict), verdict_sentences.short_answer(verdict)]
        return one_line(f"{self.verdict}: {' '.join(filter(None, said))}")

    def lines(self) -> list[str]:
        """The sentence, and where the rest is."""
        return [self.sentence, f"page: {self.page}" if self.page else f"run: {self.folder}"]

    def __bool__(self) -> bool:
        """``assert rtproof.run(...)`` without ``.proven`` would pass whatever the verdict is."""
        raise MeasurementError(
            f"a run is neither true nor false: assert run.held, for example; this one is {self.verdict}"
        )

    def __repr__(self) -> str:
        """Short enough for an assertion that pytest explains. The whole sentence stands below it."""
        return f"<{self.verdict}, {self.page or self.folder}>"

    def properties(self) -> Iterator[tuple[str, str]]:
        """Name, with the unit, and text of each figure."""
        yield "verdict", self.verdict
        yield "sentence", self.sentence
        figures = {
            "n": self.n,
            "missed": self.missed,
            "exceeded_count": self.exceeded_count,
            "episodes": self.episodes,
            "measured_s": self.measured_s,
            "more_s": self.more_s,
            "worst_us": self.worst_us,
            **dict(zip(("median_us", "p99_us", "p99_9_us"), self._quantiles_us(), strict=False)),
        }
        yield from ((name, f"{figure:.12g}") for name, figure in figures.items() if figure is not None)
        yield "run", str(self.folder)
        if self.page:
            yield "page", str(self.page)

    @property
    def _has_times(self) -> bool:
        return self.analysis.pooled.series.unit == "ns"

    def _quantiles_us(self) -> list[float | None]:
        if not self._has_times or not self.analysis.pooled.observed.count:
            return []
        found = (each.value for each in quantiles(self.analysis.pooled, shares=SHARES))
        return [None if value is None else value / 1_000 for value in found]


class Binding(Protocol):
    """Where a test measures. options: KEY=VALUE; output: the folder for the runs."""

    target: str
    options: tuple[str, ...]
    output: Path


def measure(bound: Binding, test: str, options: Mapping[str, Any], labgrid_target: Any) -> RunResult:
    """One run. test: the test's name; labgrid_target: of labgrid's fixture, None without it.

    Any error of the user's or the target's means that nothing was measured; FailedRunError, that the agent failed after
    it had measured.
    """
    name = LABGRID if bound.target == LABGRID_FIXTURE else bound.target
    words = [*option_words(options), f"--target={name}", *(f"--target-option={each}" for each in bound.options)]
    context = command.make_context("rtproof", words)
    asked, wanted = option_values.take_run_request(context.params, ("rtproof", "run", *words))
    assert isinstance(wanted, Measurement)  # FOR_THE_SHELL has the options of all others
    with (
        _board_for_this_test(asked, labgrid_target),
        _opened(asked, wanted, labgrid_target) as target,
    ):
        asked = replace(asked, output=_new_folder(bound.output, test))
        folder, outcome = target_runs.measure_on(target, asked, wanted, target_runs.watch_of(asked, wanted))
    page, analysis = measured_results.judge(asked, folder.absolute())
    result = RunResult(folder.absolute(), page, analysis, outcome.interrupted)
    if failure := target_runner.agent_failure(outcome):
        raise FailedRunError(f"{failure}; what it measured: {' '.join(result.lines())}", result)
    return result


def usage_sentence(error: Exception) -> str:
    """Of an option that click refuses; "" for any other error."""
    if isinstance(error, click.exceptions.Exit):  # click takes --explain=--help for --help
        return "rtproof.run() takes no help"
    if not isinstance(error, click.ClickException):
        return ""
    return f"rtproof.run(): {one_line(error.format_message().rstrip('.'))}"


def option_words(options: Mapping[str, Any]) -> list[str]:
    """The words of the command line for arguments by name. UserError for an argument that has no meaning here."""
    known = _known_options()
    found: list[str] = []
    for name, value in options.items():
        if name in BOUND:
            raise UserError(f"rtproof.run() takes no {name}: {BOUND[name]}")
        if name in FOR_THE_SHELL:
            raise UserError(f"rtproof.run() takes no {name}: it measures one run and prints nothing")
        if name not in known:
            raise UserError(unknown_name("argument of rtproof.run()", name, sorted(known)))
        found += _words_of(name, value, known[name])
    return found


def _known_options() -> dict[str, click.Option]:
    """The options of the command by the names of their arguments, without those that a test may not give."""
    options = [each for each in command.params if isinstance(each, click.Option)]
    names = {word.removeprefix("--").replace("-", "_"): each for each in options for word in each.opts if len(word) > 2}
    return {name: each for name, each in names.items() if name not in (*BOUND, *FOR_THE_SHELL)}


def _words_of(name: str, value: object, option: click.Option) -> list[str]:
    word = "--" + name.replace("_", "-")
    if isinstance(value, (list, tuple)):
        if not option.multiple:
            raise UserError(f"rtproof.run({name}=...) takes one value and no list")
        return [each for one in value for each in _words_of(name, one, option)]
    if value is None:
        return []
    if isinstance(value, bool):
        return _words_of_flag(name, option, value=value)
    if option.is_flag:
        raise UserError(f"rtproof.run({name}={value!r}): it takes True or False")
    if not isinstance(value, (str, int, float, Path)):
        raise UserError(f"rtproof.run({name}=...) takes text or a number, and no {type(value).__name__}")
    return [f"{word}={value}"]


def _words_of_flag(name: str, option: click.Option, *, value: bool) -> list[str]:
    if not option.is_flag and not isinstance(option.flag_value, str):
        raise UserError(f"rtproof.run({name}={value}): it takes a value, such as {name}={option.metavar or '...'}")
    return ["--" + name.replace("_", "-")] if value else list(option.secondary_opts)


def _new_folder(output: Path, test: str) -> Path:
    name = re.sub(r"[^\w=-]+", "-", test.replace(".py::", "-"), flags=re.ASCII)[-MOST_OF_NAME:].strip("-")
    return files.free_path(output / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}")


def _opened(asked: ExperimentRequest, wanted: Measurement, labgrid_target: Any) -> AbstractContextManager[Target]:
    if labgrid_target is None:
        return target_runs.open_target_for(asked, wanted)
    module = plugins.load_plugin(targets, LABGRID)
    options = plugins.checked_options(f"the target {LABGRID}", module.OPTIONS, asked.target_options)
    opened: AbstractContextManager[Target] = module.board_of(labgrid_target, options)
    return opened


@contextmanager
def _board_for_this_test(asked: ExperimentRequest, labgrid_target: Any) -> Iterator[None]:
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


def board_key(asked: ExperimentRequest, labgrid_target: Any) -> str:
    """The same for two requests that measure the same board, as far as their options tell."""
    if labgrid_target is not None:
        environment = getattr(getattr(labgrid_target, "env", None), "config_file", "")
        words = [LABGRID, str(getattr(labgrid_target, "name", "")), str(environment)]
    else:
        ways = ("user", *board_options())
        words = [asked.target, *sorted("=".join(each) for each in asked.target_options if each[0] not in ways)]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
