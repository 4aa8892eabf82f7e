# SPDX-License-Identifier: Apache-2.0
"""The last words of the live view are those of the verdict: the state, the exceedances, and what is missing.

Runs are drawn at random and simulated in this process, so no clock of the machine decides what is asserted.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from rtproof.core.phrases import how_often, limit_value
from rtproof.core.units import format_duration
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import State, Verdict
from rtproof.judge.verdict_sentences import short_answer
from rtproof.judge.watch import Watch
from rtproof.record.activations import TOLD_APART_NS
from rtproof.record.contents import EndReason
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement
from rtproof.run.live_view import LiveView, Progress
from rtproof.run.session import AgentListener
from rtproof.simulation import simulated_agent
from rtproof.simulation.events import EVENT_KINDS

RUNS = 60
SECOND = 1_000_000_000
US = 1_000
RATES_NS = (SECOND // 20, SECOND // 10, SECOND, 10 * SECOND, 60 * SECOND)
LIMITS_NS = (18 * US, 100 * US, 120 * US, 150 * US, 500 * US)
"""The first is one that activations without an event exceed, too, so that late times are dense."""


class Pipe:
    """Stands for the pipe between the simulated agent and whoever watches."""

    def __init__(self, listener: AgentListener) -> None:
        self.stop: EndReason | None = None
        self._listener = listener

    def tell(self, lines: Iterable[str]) -> None:
        self._listener.listen(lines)
        if self._listener.stopped:
            self.stop = EndReason.INTERRUPTED


def drawn(random: np.random.Generator) -> tuple[list[Requirement], list[str], bool]:
    """Limits, the agent's words, and whether the run ends once it is decided."""
    requirements = {}
    for _ in range(random.integers(1, 4)):
        limit_ns, at_most_ns = int(random.choice(LIMITS_NS)), int(random.choice(RATES_NS))
        plain = Requirement(limit_ns, shows_ns=10 * SECOND)
        requirements[limit_ns] = plain if random.random() < 0.4 else Requirement(limit_ns, at_most_ns)
    words = ["run", "--period", str(random.choice(["1ms", "7ms", "10ms"])), "--threads", str(random.integers(1, 4))]
    words += ["--duration", str(random.choice(["1s", "20s", "90s"])), "--progress", "500ms"]
    words += [word for limit_ns in requirements for word in ("--limit", f"{limit_ns}ns")]
    words += ["--record", "samples"] if random.random() < 0.8 else []
    options = (
        f"seed={random.integers(1, 1_000_000)}",
        f"episodes={random.choice(['0/h', '1/min', '10/min', '30/min', '2/s'])}",
        f"kind={random.choice(list(EVENT_KINDS))}",
    )
    return list(requirements.values()), [*words, "--simulate", *options], bool(random.random() < 0.6)


def last_words(
    path: Path, requirements: list[Requirement], words: list[str], ends_run: bool, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """What the live view says last of each limit. The last drawing leaves that out. The record is at the path."""
    watch = Watch(requirements, ends_run=ends_run)
    drawn = StringIO()
    view = LiveView(drawn, "", False, more=watch.lines)
    listener = AgentListener(view, path.with_name("log"), watch)
    with monkeypatch.context() as patch:
        patch.setattr(simulated_agent, "ProgressPipe", lambda _: Pipe(listener))
        where = words.index("--simulate")
        assert simulated_agent.main([words[0], "-o", str(path), *words[1:where], *words[where:]]) == 0
    listener.finish(failed=False)
    assert not view.threads or re.search(r" of : [\d,]+ activations, max [^\n]* lost\n$", drawn.getvalue())
    return [line for line in watch.lines() if not line.startswith(" ")]


def agrees(line: str, verdict: Verdict) -> bool:
    """Whether a line says what the verdict says."""
    asked, state = verdict.requirement, verdict.state
    assert asked is not None
    if asked.plain:
        if state is not State.EXCEEDED:
            return ": not exceeded" in line
        return f": EXCEEDED {how_often(verdict.exceedances_schedule or 0)}; the largest is " in line
    decided = next((word for word in ("PROVEN", "REFUTED") if re.search(f": {word}(,| at | \\()", line)), "")
    if re.search(r": [^;]*s without an exceedance$", line):
        return (verdict.measured_ns or 0) < 2 * SECOND  # A second is known when each thread has reported twice.
    count = re.search(r"(at least |to )?([\d,]+) episode", line)
    assert count, line
    told = int(count[2].replace(",", ""))
    episodes = len(verdict.episodes)
    if count[1] == "at least ":
        assert asked.gap_ns < TOLD_APART_NS
        return told <= episodes and decided in ("", state.value)
    said = decided or State.UNDECIDED.value
    missing = re.search("so far; (.* more without an exceedance.*)", line)
    bunched = "but in bunches" in line
    same = not count[1] and told == episodes and said == state.value and bunched == verdict.withheld
    return same and (missing is None or missing[1] in short_answer(verdict))


def of_limit(lines: list[str], asked: Requirement) -> str:
    """The one line about a limit."""
    rate = "" if asked.plain else f", 1/{re.sub(r'^1(?=[a-z])', '', format_duration(asked.at_most_ns))}"
    (line,) = (line for line in lines if line.startswith(f"{limit_value(asked.limit_ns)}{rate}: "))
    return line


def test_the_live_view_ends_with_the_words_of_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(34)
    states: list[State] = []
    said: list[str] = []
    for number in range(RUNS):
        requirements, words, ends_run = drawn(random)
        path = tmp_path / f"{number}.rtrec"
        lines = last_words(path, requirements, words, ends_run, monkeypatch)
        record = open_record(path)
        verdicts = analyse(record, requirements).verdicts
        for verdict in verdicts:
            asked = verdict.requirement
            assert asked is not None
            line = of_limit(lines, asked)
            said.append(line)
            assert agrees(line, verdict), (line, verdict.state, verdict.reasons, words)
            at_ns = verdict.decided_at_ns
            if (
                ends_run
                and at_ns is not None
                and verdict.state.exit_code == State.REFUTED.exit_code
                and asked.gap_ns >= TOLD_APART_NS
            ):
                assert record.end is not None
                assert record.end.time_ns <= at_ns + 3 * SECOND, (line, words)
            states.append(verdict.state)
        path.unlink()
    assert {State.HELD, State.EXCEEDED, State.PROVEN, State.REFUTED, State.UNDECIDED} <= {*states}
    for part in (" more without an exceedance", " more without an exceedance (unlikely: ", ": at least "):
        assert any(part in line for line in said), part


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_a_proof_stands_if_the_episodes_come_in_bunches_later(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bunches are a doubt about it, which the first screen has in one sentence."""
    asked = Requirement(2_000 * US, SECOND)
    words = ["run", "--period", "10ms", "--threads", "1", "--duration", "63s", "--progress", "1s", "--limit"]
    simulated = ["--record", "samples", "--simulate", f"seed={seed}", "episodes=30/min", "above=3ms"]
    (line,) = last_words(tmp_path / "a.rtrec", [asked], [*words, f"{asked.limit_ns}ns", *simulated], False, monkeypatch)
    verdict = analyse(open_record(tmp_path / "a.rtrec"), [asked]).verdict
    assert verdict.state is State.PROVEN
    assert agrees(line, verdict), line
    doubt = "The episodes look bunched: PROVEN may be wrong in more than 5 % of runs."
    assert (doubt in short_answer(verdict)) is bool(verdict.bunched)
    assert verdict.bunched or seed != 5


def test_without_a_terminal_the_first_numbers_are_a_line_at_once_and_the_next_after_an_interval() -> None:
    drawn, seconds = StringIO(), iter((0.0, 0.1, 4.9, 5.2, 5.2))
    view = LiveView(drawn, "1 h", False, now=lambda: next(seconds))
    row = Progress(1_000_000_000, 0, 0, 1_000, 0, 0, 5_000, 9_000)
    lines = []
    for n in range(3):
        view.show({0: replace(row, obtained=1_000 + n)}, {})
        lines.append(drawn.getvalue().count("\n"))
    assert lines == [1, 1, 2]
