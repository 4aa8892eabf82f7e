# SPDX-License-Identifier: Apache-2.0
"""The order of all that speaks against a run."""

import re
from collections import Counter
from dataclasses import replace

from doubt_cases import CLOCK, assert_brief, clean, facts, files
from test_golden_coverage import doubts, outputs

from rtproof.judge import worst_first
from rtproof.judge.analyse import analyse
from rtproof.judge.doubts.registry import RULES
from rtproof.record.contents import Moment
from rtproof.report.sections.verdict import doubts_in_short
from rtproof.summary.summary_model import Doubt, Severity


def test_every_code_has_one_place() -> None:
    groups = (
        worst_first.FOREMOST_CODES, worst_first.LOSS_CODES, worst_first.FIGURE_CODES, worst_first.CONDITION_CODES,
        worst_first.TOOL_CODES, worst_first.MACHINE_CODES,
    )  # fmt: skip
    places = Counter(code for group in groups for code in group)
    assert set(places) == doubts() | set(RULES)
    assert set(places.values()) == {1}


def test_what_every_run_on_the_machine_has_comes_after_what_is_of_this_run() -> None:
    stolen = "cpu  9 0 9 99 0 0 0 9 0 0\ncpu0 9 0 9 99 0 0 0 9 0 0\n"
    found = analyse(
        clean(
            facts=facts({("minor_faults", Moment.END): "2", ("warmup_ns", Moment.ASKED): "0"}),
            files=files(
                {("/proc/stat", Moment.END): stolen, (CLOCK, Moment.START): "hpet", (CLOCK, Moment.END): "hpet"}
            ),
        ),
        workers=1,
    )
    told = [each.code for each in found.doubts]
    assert told == ["page-faults", "warm-up", "steal", "clock-source"]


def test_what_every_run_on_the_machine_has_is_one_line() -> None:
    """On a virtual machine it hid a load that began late, and a FIFO thread above the measured one."""

    def made(*codes: str) -> list[Doubt]:
        return [Doubt(code, Severity.WARNING, f"the fact of {code}", "mend it") for code in codes]

    several = worst_first.worst_first(made("steal", "load-late", "guest", "rt-threads", "clock-source"))
    assert worst_first.briefs_worst_first(several) == [
        "the fact of rt-threads: mend it",
        "the fact of load-late: mend it",
        "always on this machine: a virtual machine, a host that takes CPU time, the clock source",
    ]
    assert worst_first.briefs_worst_first(made("steal")) == ["the fact of steal: mend it"]
    invalid = [replace(each, severity=Severity.INVALID) for each in made("virtual-smp", "guest")]
    assert len(worst_first.briefs_worst_first(invalid)) == 2, "what makes a run INVALID is said in full"


def test_one_of_a_kind_is_the_worst_and_all_are_counted() -> None:
    lost, more = Doubt("lost", Severity.WARNING, "1 lost", ""), Doubt("lost", Severity.WARNING, "2 lost", "")
    bad = Doubt("lost", Severity.INVALID, "99 lost", "")
    other = Doubt("drift", Severity.INVALID, "slow", "")
    found = replace(analyse(clean(), workers=1), doubts=worst_first.worst_first([lost, more, other, bad]))
    assert worst_first.kinds_worst_first(found) == ((bad, 3), (other, 1))
    assert doubts_in_short(found) == ["99 lost, and 2 more like it", "slow"]


def test_every_doubt_that_the_corpus_prints_fits_into_a_line_of_the_first_screen() -> None:
    told = set(re.findall(r'"what": "(.*)",\n *"remedy": "(.*)",\n', outputs()))
    assert len(told) > 20
    assert_brief(Doubt("any", Severity.WARNING, what, remedy) for what, remedy in told)


def test_invalid_comes_first_and_doubts_of_one_kind_keep_their_order() -> None:
    lost, second = Doubt("lost", Severity.WARNING, "1 lost", ""), Doubt("lost", Severity.WARNING, "0 lost", "")
    bad = Doubt("load-idle", Severity.INVALID, "no work", "look")
    assert worst_first.worst_first([lost, second, bad]) == (bad, lost, second)
