# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab ten-ms`` from the command line to the files it leaves."""

import json
from pathlib import Path

import pytest
from lab_desk import assert_refused, desk

from rtproof.cli.main import main
from rtproof.record import rundir

__all__ = ["desk"]

pytestmark = pytest.mark.usefixtures("desk")
STRESS = "cpu+dd+timers"


def ten_ms(*arguments: str) -> int:
    return main(["lab", "ten-ms", "--cycles", "500", *arguments])


def test_four_scenarios_in_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert ten_ms("--output", "a") == 0
    out, err = capsys.readouterr()
    assert out.count(" here  ") == out.count(" article  ") == 4
    assert out.endswith("\npage: a/page.html\n")
    names = [line.partition("] ")[2].partition(": ")[0] for line in err.splitlines() if line.startswith("[")]
    plain, rt = "debian-6.1 preempt=none", "debian-6.1-rt"
    assert sorted(names) == sorted([f"{plain}, idle", f"{plain}, {STRESS}", f"{rt}, {STRESS}", f"{rt}, {STRESS}+net"])
    assert len(list(Path("a/cells").iterdir())) == 4
    told = json.loads(Path("a/result.json").read_bytes())
    assert [each["failure"] for each in told["scenarios"]] == [None] * 4
    record = rundir.open_run(next(Path("a/cells").iterdir())).record
    assert record.series[0].unit == "ns"


def test_json_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert ten_ms("--json") == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "rtproof.lab.ten-ms"
    (folder,) = Path("runs").iterdir()
    assert folder.name.endswith("Z-ten-ms")


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
