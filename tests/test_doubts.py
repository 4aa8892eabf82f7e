# SPDX-License-Identifier: Apache-2.0
"""The list of doubts as a whole: a clean run has none, the page names all, the grave ones come first."""

import re
from pathlib import Path

from doubt_cases import clean, facts, files, said_of

from rtproof.judge.analyse import CHECKS, LOSS_CODES, doubts_about_run
from rtproof.record.contents import Event, Moment
from rtproof.summary.series import summarise
from rtproof.summary.summary_model import Severity

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "rtproof"


def test_a_clean_run_leaves_no_doubt() -> None:
    assert said_of(clean()) == {}
    assert said_of(clean(), limit_ns=None) == {}


def test_every_code_is_on_the_page_and_no_other() -> None:
    sources = "".join(path.read_text() for path in SOURCES.rglob("*.py"))
    codes = set(re.findall(r'Doubt\(\s*"([a-z-]+)"', sources))
    table = (ROOT / "docs" / "json-schema.md").read_text().partition("## Doubts")[2].partition("\n# ")[0]
    assert codes == set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE))
    assert len(CHECKS) == len(set(CHECKS))


def test_what_makes_a_run_invalid_comes_first() -> None:
    made = clean(
        facts=facts({("warmup_ns", Moment.ASKED): "0", ("cpu", Moment.END): "1"}),
        files=files({("/proc/cpuinfo", Moment.START): "flags : hypervisor"}),
    )
    found = doubts_about_run(made, summarise(made), None)
    assert [d.code for d in found] == ["cpu", "warm-up", "guest"]
    assert [d.severity for d in found] == [Severity.INVALID, Severity.WARNING, Severity.WARNING]
    assert all(d.what and d.remedy for d in found)


def test_what_is_gone_comes_before_all_other_warnings() -> None:
    made = clean(
        facts=facts({("warmup_ns", Moment.ASKED): "0", ("cpu", Moment.END): "1"}),
        events=(Event(5, 0, "dropped", ""),),
    )
    assert [d.code for d in doubts_about_run(made, summarise(made), None)] == ["cpu", "events-dropped", "warm-up"]


def test_every_loss_is_a_doubt() -> None:
    table = (ROOT / "docs" / "json-schema.md").read_text().partition("## Doubts")[2]
    assert [code for code in LOSS_CODES if f"| `{code}` |" not in table] == []
