# SPDX-License-Identifier: Apache-2.0
"""``rtproof cyclictest``: cyclictest's options, lines and JSON; beside the real program where it is installed."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rtproof.cli.main import main
from rtproof.experiment import target_runs
from rtproof.experiment.run_request import ExperimentRequest, Measurement

LINE = re.compile(r"T: ?\d+ \( *\d+\) P: ?\d+ I:\d+ C: *\d+ Min: *-?\d+ Act: *-?\d+ Avg: *-?\d+ Max: *-?\d+")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ExperimentRequest, Measurement, Any]]:
    """What would be measured, in place of measuring it."""
    found: list[tuple[ExperimentRequest, Measurement, Any]] = []

    def keep(request: ExperimentRequest, wanted: Measurement, output: object) -> int:
        found.append((request, wanted, output))
        return 0

    monkeypatch.setattr(target_runs, "run_as_cyclictest", keep)
    return found


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ("-D 10", "--period 1ms --duration 10s --threads 1 --policy other --dma-latency 0"),
        (
            "-m -S -p 80 -i 200 -D 1M -q",
            "--period 200us --duration 1min --policy fifo --priority 80 --dma-latency 0 STEP",
        ),
        ("-mqSp90 -i200 -h400 -D1h", "--period 200us --duration 1h --policy fifo --priority 90 --dma-latency 0"),
        ("-t -d 0 -D 1d", "--period 1ms --duration 1d --policy other --dma-latency 0"),
        (
            "-t 2 -d 7 -D 1",
            "--period 1ms --duration 1s --threads 2 --policy other --dma-latency 0 --period-step 7us",
        ),
        ("-a 0-1 -t2 -l 50", "--period 1ms --samples 50 --threads 2 --cpus 0-1 --policy other --dma-latency 0 STEP"),
        ("-t -a -p 5 --policy rr", "--period 1ms --duration 30d --policy rr --priority 5 --dma-latency 0 STEP"),
        ("-p 5 --policy other -D 1", "--period 1ms --duration 1s --threads 1 --policy other --dma-latency 0"),
        ("--laptop -D 1 -n -u -M", "--period 1ms --duration 1s --threads 1 --policy other --dma-latency off"),
        ("--latency 30 -D 1", "--period 1ms --duration 1s --threads 1 --policy other --dma-latency 30"),
    ],
)
def test_the_agent_is_asked_for_the_same(
    options: str, arguments: str, asked: list[tuple[ExperimentRequest, Measurement, Any]]
) -> None:
    assert main(["cyclictest", *options.split()]) == 0
    ((_, wanted, _),) = asked
    words = arguments.replace("STEP", "--period-step 500us").split()
    pairs = [list(wanted.arguments[at : at + 2]) for at in range(0, len(wanted.arguments), 2)]
    assert sorted(pairs) == sorted([words[at], words[at + 1]] for at in range(0, len(words), 2))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("-N -h 10", "-N and -h exclude each other"),
        ("-D 1 -l 5", "-D and -l exclude each other"),
        ("-D soon", "soon"),
        ("-b 100", "No such option"),
        ("-t many -D 1", "many"),
        ("-p 100", "100"),
        ("-i 0", "0"),
    ],
)
def test_what_makes_no_sense_is_refused(options: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cyclictest", *options.split()]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_a_result_that_exists_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.json").write_text("mine")
    assert main(["cyclictest", "-D", "1", "--json", "x.json"]) == 2
    assert "x.json" in capsys.readouterr().err
    assert (tmp_path / "x.json").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def keys(document: object) -> object:
    """The structure of a JSON document: its keys, and the kind of each value."""
    if isinstance(document, dict):
        return {re.sub(r"^\d+$", "N", key): keys(value) for key, value in document.items()}
    return type(document).__name__


@pytest.mark.parametrize("histogram", [(), ("-h", "20000")])
def test_lines_and_json_have_the_fields_of_the_real_program(
    histogram: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    real = shutil.which("cyclictest")
    if not real:
        pytest.skip("cyclictest of rt-tests is not installed")
    monkeypatch.chdir(tmp_path)
    options = ["-q", "-l", "100", "-i", "2000", "-t", "1", *histogram]
    theirs = subprocess.run([real, *options, "--json=real.json"], capture_output=True, text=True, check=False)
    if theirs.returncode:
        pytest.skip(f"cyclictest does not run here: {theirs.stderr[:100]}")
    assert main(["cyclictest", *options, "--json=ours.json"]) == 0
    ours = capfd.readouterr().out
    assert keys(json.loads(Path("ours.json").read_text())) == keys(json.loads(Path("real.json").read_text()))
    if histogram:
        heads = [
            [line.split(":")[0] for line in text.splitlines() if line.startswith("#")] for text in (ours, theirs.stdout)
        ]
        assert heads[0] == [head for head in heads[1] if "dma" not in head]
    else:
        (line,) = ours.splitlines()
        assert LINE.fullmatch(line), line
        assert any(LINE.fullmatch(each) for each in theirs.stdout.splitlines())
    (run,) = Path("runs").glob("*Z-*[!l]")
    assert run.is_dir()
