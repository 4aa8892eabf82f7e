# SPDX-License-Identifier: Apache-2.0
"""The Test Anything Protocol, version 13: a test for each limit, with its reason and the figures of each thread.

HELD and PROVEN are ok; EXCEEDED, REFUTED and INVALID are not. UNDECIDED is not ok if the limit was exceeded, else it is
skipped with its reason. (Format:
https://testanything.org/tap-version-13-specification.html)
"""

import json
from collections.abc import Iterator
from pathlib import Path

from rtproof.exporters import _columns
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Analysis, Outcome, State, Verdict
from rtproof.summary.summary_model import Summary

SUFFIX = ".tap"
OPTIONS: dict[str, str] = {}


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write a test for each limit. Without a limit all tests are skipped, unless the run is INVALID."""
    verdicts = _columns.asked(analysis)
    figures = [_figures(*each) for each in _columns.threads(analysis)]
    with _columns.new_file(path) as file:
        file.write("TAP version 13\n")
        file.write(_columns.mark_lines(analysis.record))
        file.writelines(f"{line}\n" for line in _tests(verdicts, analysis))
        file.writelines(f"# {line}\n" for line in figures)
    return f"{path}: {len(verdicts)} tests{_columns.mark_note(analysis)}"


def _tests(verdicts: tuple[Verdict, ...], analysis: Analysis) -> Iterator[str]:
    if not verdicts and analysis.verdict.state is State.INVALID:
        yield from ("1..1", f"not ok 1 - the run is INVALID: {_plain(_columns.answer(analysis.verdict))}")
        return
    yield f"1..{len(verdicts)}" if verdicts else "1..0 # SKIP no limit was given"
    for number, verdict in enumerate(verdicts, 1):
        yield from _test(number, verdict)


def _test(number: int, verdict: Verdict) -> Iterator[str]:
    claim = verdict_sentences.requested_limit_sentence(verdict.requirement) if verdict.requirement else ""
    answer = _columns.answer(verdict)
    failed = verdict.outcome in (Outcome.FAILED, Outcome.INVALID)
    skipped = f" # SKIP {verdict.state.value}: {_plain(answer)}" if verdict.outcome is Outcome.SKIPPED else ""
    yield f"{'not ok' if failed else 'ok'} {number} - {_plain(claim)}{skipped}"
    # The block is YAML, of which JSON's strings are a part.
    yield from ("  ---", f"  verdict: {verdict.state.value}", f"  message: {json.dumps(answer)}", "  ...")


def _plain(text: str) -> str:
    """A description: a # in it would begin a directive."""
    return text.replace("#", "No.").replace("\n", " ")


def _figures(summary: Summary, ends_us: dict[str, float]) -> str:
    thread = f"thread {summary.series.thread} on CPU {summary.series.cpu}"
    if not ends_us:
        return f"{thread}: it never ran, {summary.never_ran} missed"
    ends = " / ".join(f"{figure:.3f}" for figure in ends_us.values())
    ran = f"{summary.obtained} activations, {summary.never_ran} missed"
    return f"{thread}: {ran}, latency {ends} us (min / mean / max)"
