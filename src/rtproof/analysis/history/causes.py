# SPDX-License-Identifier: Apache-2.0
"""Which facts changed where the latency did. That they changed together does not make one the cause of the other."""

from collections.abc import Iterator, Sequence

from rtproof.analysis.comparison.alike import told
from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.comparison.ranking import known, rank
from rtproof.analysis.history.model import NEAR, FactChange

OWN = ("length asked",)
"""What a user changes without touching the system; it comes last."""


def fact_changes(runs: Sequence[RunFigures], since: int, at: int, until: int) -> tuple[FactChange, ...]:
    """Facts whose text changed within NEAR runs of ``at``, first those that hold on both sides, then by what is known.

    since, until: the stretches before and behind the change reach from here to there.
    """
    keys = dict.fromkeys(key for run in runs[since:until] for key in run.facts)
    found = [change for key in keys for change in _of_key(key, runs, since, at, until)]
    return tuple(sorted(found, key=lambda one: (not one.steady, one.key in OWN, rank(one.key), abs(one.at - at))))


def _of_key(key: str, runs: Sequence[RunFigures], since: int, at: int, until: int) -> Iterator[FactChange]:
    """The nearest change of its text, if one is near enough."""
    texts = [told(key, run) for run in runs[since:until]]
    steps = [since + i for i in range(1, len(texts)) if texts[i - 1] != texts[i]]
    near = [step for step in steps if abs(step - at) <= NEAR]
    if not near:
        return
    step = min(near, key=lambda one: abs(one - at))
    row = known(key)
    yield FactChange(
        key,
        texts[step - since - 1],
        texts[step - since],
        step,
        len(steps) == 1,
        row.why if row else "",
        row.source if row else "",
    )
