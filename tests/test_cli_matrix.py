# SPDX-License-Identifier: Apache-2.0
"""``rtproof matrix`` from the command line."""

import json
from pathlib import Path

import pytest
from test_report_together import gpio, xenomai

from rtproof.cli.main import main


@pytest.fixture
def results(tmp_path: Path) -> list[str]:
    for name, told in (("gpio", gpio()), ("xenomai", xenomai())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(told))
    return [str(tmp_path / "gpio"), str(tmp_path / "xenomai" / "result.json")]


def test_folders_and_files_become_one_table(results: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", *results]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Largest latency of each board with each kernel [us]" in out
    assert "> 30,000.000" in out


@pytest.mark.parametrize(
    ("form", "start"), [("html", "<!doctype html>"), ("markdown", "# rtproof: boards and kernels")]
)
def test_it_is_written_in_every_form(results: list[str], tmp_path: Path, form: str, start: str) -> None:
    page = tmp_path / "page"
    assert main(["matrix", *results, "--format", form, "--output", str(page)]) == 0
    assert page.read_text().startswith(start)
    assert main(["matrix", *results, "--output", str(page)]) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "result.json: no such file"),
        (b"\xff{", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"{}", "result.json is no result of a profile"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "result.json").write_bytes(content)
    assert main(["matrix", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err
