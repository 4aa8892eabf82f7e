# SPDX-License-Identifier: Apache-2.0
"""The page for people who decide: it has the verdict, a picture, conditions and cautions, and prints on one A4 page."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import chromium
import pytest
from report_cases import HOSTILE, hostile, loop, many_threads, missed, normal, nothing, several_fields

from rtproof import report
from rtproof.judge.analysis_model import Analysis
from rtproof.report.blocks import Section, Text
from rtproof.report.formats import summary

pytest.importorskip("matplotlib", reason="there is no matplotlib")


def page_of(analysis: Analysis) -> str:
    return report.render("summary", report.title(analysis), report.compose(analysis)).decode()


def test_it_has_the_verdict_a_picture_the_conditions_and_the_cautions() -> None:
    analysis = normal()
    page = page_of(analysis)
    assert f">{analysis.verdict.state.value}</p>" in page
    assert "<dt>policy</dt><dd>fifo</dd>" in page
    assert "<dt>kernel</dt>" in page
    assert page.count("<svg") == 1
    assert "limit 500 us" in page
    assert [part for part in ("Picture", "Conditions", "Cautions") if f"<h2>{part}</h2>" not in page] == []


def test_a_run_without_values_has_no_picture() -> None:
    page = page_of(nothing())
    assert "<svg" not in page
    assert ">INVALID</p>" in page


def test_cautions_that_do_not_fit_are_counted() -> None:
    doubts = tuple(Text((f"caution {at}.",), "doubt", "Warning") for at in range(9))
    page = summary.draw("title", [Section("doubts", "Doubts", doubts)]).decode()
    assert "caution 5." in page
    assert "caution 6." not in page
    assert "3 more cautions in the full report" in page


def test_words_of_a_record_are_never_markup() -> None:
    page = page_of(hostile())
    assert HOSTILE not in page
    assert "<script" not in page
    assert "<img" not in page


@pytest.mark.parametrize("made", [normal, missed, hostile, many_threads, several_fields, loop, nothing])
def test_it_prints_on_one_page(made: Callable[[], Analysis], tmp_path: Path) -> None:
    browser = chromium.program()
    if browser is None:
        pytest.skip("there is no chromium")
    (tmp_path / "page.html").write_text(page_of(made()))
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", f"--user-data-dir={tmp_path}/it")
    command = [browser, *flags, f"--print-to-pdf={tmp_path}/page.pdf", (tmp_path / "page.html").as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=chromium.DEADLINE_S)
    assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes())) == 1
