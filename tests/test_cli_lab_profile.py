# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab profile`` from the command line to the files it leaves."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from lab_desk import assert_refused, desk

from rtproof.cli.main import main

__all__ = ["desk"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("desk")]


def profile(*arguments: str) -> int:
    return main(["lab", "profile", *arguments])


def test_a_profile_on_two_kernels_leaves_a_page_a_table_and_its_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert profile("bootlin-timer", "--duration", "2s", "--output", "a") == 0
    out, err = capsys.readouterr()
    assert "debian-6.1-rt, debian-6.1 preempt=none" in out
    assert out.endswith("\nreport: a/report.html\n")
    assert sum(line.startswith("[") for line in err.splitlines()) == 8
    cells = [place for place in Path("a/cells").iterdir() if place.is_dir()]
    assert len(cells) == 8
    assert all(place.with_name(f"{place.name}.html").is_file() for place in cells)
    page = Path("a/report.html").read_text()
    assert "Shortened: 2.0 s instead of" in page
    assert "How it was made" in page
    assert all(f"./cells/{quote(place.name)}.html" in page for place in cells)
    assert "40" in Path("a/table.md").read_text()


def test_json_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert profile("bootlin-timer", "--samples", "2000", "--set", "method=nanosleep", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "rtproof.campaign"
    (folder,) = Path("runs").iterdir()
    assert folder.name.endswith("Z-lab-bootlin-timer")
    assert json.loads((folder / "result.json").read_bytes()) == told


def test_a_cell_that_fails_is_a_row_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    Path("own.toml").write_text(
        'schema = 1\ntitle = "t"\narticle = "bootlin"\nabout = "a"\ncolumns = ["max"]\n[options]\nperiod = "1ms"\n'
        'duration = "1s"\n[[axis]]\nname = "load"\n[[axis.value]]\nname = "idle"\n[[axis.value]]\nname = "fails"\n'
        'options = { load = ["cpu"] }\n'
    )
    assert profile("own.toml", "--kernel", "debian-6.1-rt", "--output", "a") == 2
    out, err = capsys.readouterr()
    assert "panicked" in err
    assert "not measured" in out
    assert [place.name for place in Path("a/cells").iterdir() if place.is_dir()] == ["debian-6.1-rt__idle"]


def test_the_articles_preemption_models_are_systems(capsys: pytest.CaptureFixture[str]) -> None:
    assert profile("toradex", "--set", "load=unloaded", "--output", "a") == 0
    out = capsys.readouterr().out
    assert "preempt=voluntary" in out
    assert "preempt=full" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing"], "there is no profile 'nothing'; there are: akamina,"),
        (["akamina", "--kernel", "nothing"], "'nothing' is no file and no name of a kernel;"),
        (["akamina", "--duration", "1s", "--samples", "3"], "--duration and --samples exclude each other"),
        (["akamina", "--set", "colour=red"], "the profile akamina has nothing to set named 'colour'"),
        (["bootlin-timer", "--load", "stress-ng"], "the load 'stress-ng' is a program, and guests have none of these"),
    ],
)
def test_refusals_are_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert profile(*words) == 2
    assert_refused(capsys, sentence)
