# SPDX-License-Identifier: Apache-2.0
"""The sections trace and observer."""

from collections.abc import Callable
from dataclasses import replace

from analysis_records import block, record
from test_observer import run
from test_tracing import made
from trace_cases import FILES, TEXT

from rtproof import report
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Record
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.sections.tracing import observer_section, trace_section


def rendered(section: Callable[[Analysis], list[Block]], of: Record) -> tuple[list[str], list[Table]]:
    """Paragraphs and tables."""
    blocks = section(analyse(of))
    texts = [paragraph for each in blocks if isinstance(each, Text) for paragraph in each.paragraphs]
    return texts, [each for each in blocks if isinstance(each, Table)]


def test_a_run_that_was_not_traced_has_neither() -> None:
    plain = record([block([1_000])])
    assert (rendered(trace_section, plain), rendered(observer_section, plain)) == (([], []), ([], []))


def test_what_was_lost_is_told() -> None:
    texts, (table,) = rendered(trace_section, made())
    assert table.rows[0] == ("sched_waking", "2")
    assert texts[0].startswith("5 events by the clock mono; 4 were overwritten by later ones and 1 was dropped.")
    assert texts[0].endswith("About buffer_kib=192 would have held all.")
    assert texts[1].endswith("from 0.000 s to 0.001 s of the run's time; what is left is without gaps from 0.000 s on.")
    assert texts[2] == "This kernel has no events spi_*, sys_enter_nanosleep*."


def test_a_text_that_is_not_whole_is_told() -> None:
    short = "\n".join(TEXT.splitlines()[:4])
    texts, _ = rendered(trace_section, replace(made(text=short), events=()))
    assert texts[1].startswith("The text has 1 event, which is not what the buffers had")


def test_nothing_lost_and_nothing_missing_is_said_in_short() -> None:
    whole = {"cpu1/stats": FILES["cpu0/stats"].replace("3", "2"), "about": "endian little\nmissing\n"}
    texts, _ = rendered(trace_section, replace(made(**whole), events=()))
    assert texts[0] == "5 events by the clock mono, and none was lost."
    assert texts[1] == "Recorded from an unknown time to the end of the run's time."
    assert len(texts) == 3


def test_an_effect_is_told_with_its_interval() -> None:
    texts, (table,) = rendered(observer_section, run(1, 2_000))
    assert [row[0] for row in table.rows] == ["mean", "median", "maximum"]
    assert texts[0].startswith("n = 10 sets of four blocks of 100 ms, of whose beginning 13 ms are left out")
    assert any(text.startswith("With tracing the median was higher by ") for text in texts)


def test_the_effect_is_in_the_short_form_that_a_run_prints() -> None:
    short = [section.name for section in report.compose(analyse(run(1, 2_000)), short=True)]
    assert "observer" in short


def test_no_effect_is_told_with_what_it_could_be_at_most() -> None:
    texts, _ = rendered(observer_section, run(4, 0))
    assert any(
        text.startswith("The median shows no effect of tracing; if there is one, it is below ") for text in texts
    )


def test_a_comparison_that_is_refused_says_why() -> None:
    texts, tables = rendered(observer_section, run(1, 0, blocks=4))
    assert tables == []
    assert texts == ["No comparison: it takes 8 sets of four whole blocks and there are 1: measure for longer."]
