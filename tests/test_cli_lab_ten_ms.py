# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab ten-ms`` from the command line to the files it leaves."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from analysis_records import SERIES, block, record
from lab_desk import assert_refused, desk

from rtproof.cli.main import main
from rtproof.experiment.ten_ms_scenarios import in_all
from rtproof.summary.loops import loop_cycles

__all__ = ["desk"]

pytestmark = pytest.mark.usefixtures("desk")


def ten_ms(*arguments: str) -> int:
    return main(["lab", "ten-ms", "--cycles", "500", *arguments])


def test_four_scenarios_in_one_command_each_on_its_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert ten_ms("--output", "a") == 0
    out, err = capsys.readouterr()
    assert out.endswith("\nreport: a/report.html\n")
    names = [line.partition("] ")[2].partition(": ")[0] for line in err.splitlines() if line.startswith("[")]
    plain, rt = "debian-6.1 preempt=none", "debian-6.1-rt"
    cells = [(plain, "other--idle"), (plain, "other--stress"), (rt, "fifo--stress"), (rt, "fifo--stress-flood")]
    assert sorted(names) == sorted(f"{system}, {cell}" for system, cell in cells)
    assert len([place for place in Path("a/cells").iterdir() if place.is_dir()]) == 4
    told = json.loads(Path("a/result.json").read_bytes())
    found = [(each["results"], each["article"]) for each in told["cells"]]
    assert [[result["system"] for result in results] for results, _ in found] == [[system] for system, _ in cells]
    articles = [rows[0]["figures"]["count"]["value"] for _, rows in found]
    assert articles == [11_229, 11_011, 11_019, 11_111]


def test_json_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert ten_ms("--json") == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "rtproof.campaign"
    (folder,) = Path("runs").iterdir()
    assert folder.name.endswith("Z-ten-ms")


@pytest.mark.parametrize(("counted", "whole"), [(11_000, 12_000), (9_000, 10_000), (900, 1_000), (1, 2)])
def test_as_many_cycles_are_counted_as_asked_for(counted: int, whole: int) -> None:
    assert in_all(counted) == whole
    loop = replace(SERIES, period_ns=10_000_000, probe="kernel", method="loop", field="task")
    assert loop_cycles(record([block([0] * (whole + 1), series=loop)], (loop,))).counted >= counted


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--plain", "debian-6.1-rt"], "debian-6.1-rt is built with PREEMPT_RT: give another kernel"),
        (["--rt", "debian-6.1"], "debian-6.1 is not built with PREEMPT_RT: give another kernel"),
        (["--rt", "nothing"], "'nothing' is no file and no name of a kernel;"),
        (["--cycles", "0"], "Invalid value for '--cycles': 0 is not in the range"),
        (["--preempt", "lazy"], "Invalid value for '--preempt': 'lazy' is not one of"),
    ],
)
def test_refusals_are_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ten_ms(*words) == 2
    assert_refused(capsys, sentence)
