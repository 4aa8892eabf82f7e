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


def printed_pages(page: str, folder: Path) -> int:
    browser = chromium.program()
    if browser is None:
        pytest.skip("there is no chromium")
    (folder / "page.html").write_text(page)
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", f"--user-data-dir={folder}/it")
    command = [browser, *flags, f"--print-to-pdf={folder}/page.pdf", (folder / "page.html").as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=chromium.DEADLINE_S)
    return len(re.findall(rb"/Type\s*/Page\b", (folder / "page.pdf").read_bytes()))


def page_of(analysis: Analysis) -> str:
    return report.render("summary", report.title(analysis), report.compose(analysis)).decode()


def test_it_has_the_verdict_a_picture_the_conditions_and_the_cautions() -> None:
    analysis = normal()
    page = page_of(analysis)
    assert f">{analysis.verdict.state.word}</p>" in page
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
    assert "and 3 more cautions" in page
    assert "--section doubts" in page
    few = summary.draw("title", [Section("doubts", "Doubts", doubts[:6])]).decode()
    assert "--section doubts" not in few


def test_a_caution_has_the_fact_and_what_to_do() -> None:
    doubts = (
        Text(("a link lost 5 samples: mend it",), "doubt", "Cautions", foremost=True),
        Text(("of 1 second",), "doubt", "Warning: the link lost 5 samples (link.lost)"),
        Text(("tracefs is not mounted", "What to do: mount it"), "doubt", "Warning: no trace was written (trace)"),
        Text(("Two kernels were compared.", "What to do: name one."), "doubt", "Objection (kernels)"),
    )
    page = summary.draw("title", [Section("doubts", "Doubts", doubts)]).decode()
    assert re.findall("<li>(.*?)</li>", page) == [
        "the link lost 5 samples",
        "no trace was written. What to do: mount it.",
        "Two kernels were compared. What to do: name one.",
    ]


def test_no_sentence_is_cut_and_those_left_out_are_counted() -> None:
    reasons = " ".join(f"Reason {at} makes the run invalid." for at in range(20))
    claim = Text(("The clock changed.",), "bad", "INVALID", (("What exactly", reasons),))
    page = summary.draw("title", [Section("verdict", "Verdict", (claim,))]).decode()
    answer = re.findall("<p>What exactly: (.*?)</p>", page)[0]
    cut = re.fullmatch(r"(.*\.) \((\d+) more sentences\)", answer)
    assert cut
    assert reasons.startswith(f"{cut[1]} ")
    assert cut[1].count("makes the run invalid.") + int(cut[2]) == 20
    assert "--section verdict" in page


def test_words_of_a_record_are_never_markup() -> None:
    page = page_of(hostile())
    assert HOSTILE not in page
    assert "<script" not in page
    assert "<img" not in page


@pytest.mark.parametrize("made", [normal, missed, hostile, many_threads, several_fields, loop, nothing])
def test_it_prints_on_one_page(made: Callable[[], Analysis], tmp_path: Path) -> None:
    assert printed_pages(page_of(made()), tmp_path) == 1


def test_the_longest_answers_and_cautions_print_on_one_page(tmp_path: Path) -> None:
    long = "A sentence as long as those of a report are, with its comma and its facts in it. " * 4
    claim = Text((long,), "bad", "INVALID", tuple((f"How {at}", long) for at in range(4)))
    doubts = tuple(Text((long, long), "doubt", f"Warning: {at} {long}(code)") for at in range(9))
    others = [each for each in report.compose(normal()) if each.name != "verdict"]
    sections = [Section("verdict", "Verdict", (claim,)), *others, Section("doubts", "Doubts", doubts)]
    page = summary.draw("rtproof: INVALID", sections).decode()
    assert re.search(r"and \d+ more cautions<", page)
    assert printed_pages(page, tmp_path) == 1


def sized(letters: int) -> str:
    """One sentence of so many letters."""
    return ("the words of a claim and " * 40)[: letters - 1].strip() + "."


@pytest.mark.parametrize(("title", "headline", "sentence", "caution"), [(180, 10, 360, 120), (180, 180, 380, 380)])
def test_what_does_not_fit_on_the_page_is_counted_and_nothing_is_cut(
    title: int, headline: int, sentence: int, caution: int, tmp_path: Path
) -> None:
    answers = tuple((f"How {at}", sized(sentence)) for at in range(4))
    claim = Text((sized(sentence), sized(sentence)), "bad", sized(headline), answers)
    doubts = tuple(Text(("of a run",), "doubt", f"Warning: {at} {sized(caution)} (code)") for at in range(9))
    others = [each for each in report.compose(normal()) if each.name not in ("verdict", "doubts", "evidence")]
    sections = [Section("verdict", "Verdict", (claim,)), *others, Section("doubts", "Doubts", doubts)]
    page = summary.draw(sized(title), sections).decode()
    words = re.sub(r"<[^>]*>", " ", page)
    assert " ..." not in words
    said = len(re.findall(r'<p class="says">|<p>How \d: ', page)) + int(
        (re.findall(r"and (\d+) more answers?<", page) or ["0"])[0]
    )
    assert said == 2 + len(answers)
    listed = page.count("<li>") - 1 + int(re.findall(r"and (\d+) more cautions<", page)[0])
    assert listed == len(doubts)
    assert "--section verdict" in page
    assert printed_pages(page, tmp_path) == 1


def test_a_third_sentence_of_the_verdict_is_on_the_page() -> None:
    claim = Text(("500 us was exceeded.", "A thread stood.", "2 limits: one INVALID."), "bad", "INVALID", (("A", "b"),))
    page = summary.draw("title", [Section("verdict", "Verdict", (claim,))]).decode()
    assert "2 limits: one INVALID." in page
