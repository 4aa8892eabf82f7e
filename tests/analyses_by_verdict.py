# SPDX-License-Identifier: Apache-2.0
"""Analyses with every verdict that a first screen must tell of, and nothing wrong with them but what is meant."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from analysis_records import MS, SECOND, block, fact
from doubt_cases import FACTS, clean, facts

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.verdict import chosen_after_the_data
from rtproof.record.contents import Moment, Record
from rtproof.record.requirement import Requirement

LATE = Requirement(500_000, SECOND, gap_ns=SECOND)
LENGTH = 6_000


def measured(*late: int) -> Record:
    """Six seconds; late: milliseconds at which an activation was above every limit."""
    values = np.full(LENGTH, 9_000)
    values[list(late)] = 900_000
    changes = {("duration_ns", Moment.ASKED): str(LENGTH * MS)}
    return clean((block([int(each) for each in values]),), facts=facts(changes))


def proven() -> Analysis:
    return analyse(measured(), LATE, 1)


def refuted() -> Analysis:
    return analyse(measured(0, 2_000, 4_000), replace(LATE, at_most_ns=100 * SECOND), 1)


def undecided() -> Analysis:
    return analyse(measured(3_000), replace(LATE, at_most_ns=10 * SECOND), 1)


def invalid() -> Analysis:
    changes = {("policy", Moment.END): "other", ("duration_ns", Moment.ASKED): str(LENGTH * MS)}
    return analyse(replace(measured(), facts=facts({**FACTS, **changes})), LATE, 1)


def not_asked() -> Analysis:
    return analyse(measured(), None, 1)


def chosen_after() -> Analysis:
    return chosen_after_the_data(proven())


def simulated() -> Analysis:
    made = measured()
    return analyse(replace(made, facts=(*made.facts, fact("simulated", "seed=7 kind=poisson"))), LATE, 1)


def several() -> Analysis:
    wanted = (LATE, replace(LATE, at_most_ns=10 * SECOND), replace(LATE, limit_ns=1_000))
    return analyse(measured(), wanted[:2], 1)


FIRST: dict[str, Callable[[], Analysis]] = {
    case.__name__: case for case in (proven, refuted, undecided, invalid, not_asked, chosen_after, simulated, several)
}
