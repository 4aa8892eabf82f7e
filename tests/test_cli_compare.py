# SPDX-License-Identifier: Apache-2.0
"""``rtproof compare`` from the command line to the page, on runs whose truth is known."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analysis_records import BEGIN, SERIES
from run_folders import latencies, write_run

from rtproof.cli.main import main
from rtproof.experiment import run_sets
from rtproof.record.contents import End, EndReason
from rtproof.record.writing import RecordWriter, SeriesWriter

N = 20_000
MODES = np.exp(np.random.default_rng(5).normal(0, 0.02, 20))
"""What runs of one thing differ by."""


def runs(folder: Path, n: int, factor: float = 1.0, first: int = 0, **more: object) -> Path:
    """A folder with n runs of one thing, each with its own number and factor; sides with another first take turns."""
    for at in range(first, first + n):
        values = latencies(at, N, factor * float(MODES[at]))
        start_ns = (60 * (at - first) + first) * 10**9
        begin = replace(
            BEGIN, run_id=(at + 1).to_bytes(16, "big"), origin_realtime_ns=BEGIN.origin_realtime_ns + start_ns
        )
        write_run(folder / f"{at:02}", values, begin=begin, **more)
    return folder


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Five runs of each, B twice as late."""
    monkeypatch.chdir(tmp_path)
    return runs(Path("rt"), 5), runs(Path("stock"), 5, 2.0, first=5)


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    capsys.readouterr()
    assert main(["compare", *arguments, "--json", "--no-report"]) == 0
    read: dict[str, object] = json.loads(capsys.readouterr().out)
    return read


def test_runs_may_be_named_one_by_one_as_in_the_help(
    sides: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = ([str(run) for run in sorted(side.iterdir())] for side in sides)
    whole = found(capsys, "rt", "--against", "stock")
    for words in (
        [*a, "--against", *b],
        [*a, *(word for run in b for word in ("--against", run))],
        [*a, "--against=" + b[0], *b[1:]],
        [*a, "--against", b[0], "--format", "text", *b[1:]],
    ):
        one_by_one = found(capsys, *words)
        assert one_by_one["metrics"] == whole["metrics"]


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        (["runs/rt"], ["runs/stock.rtrec"], ("rt", "stock")),
        (["rt-1", "rt-2", "rt-10"], ["x/stock_1", "stock_2"], ("rt", "stock")),
        (["old 6.1", "old 6.2"], ["new"], ("old", "new")),
        (["a/run"], ["b/run"], ("A", "B")),
        (["1", "2"], ["stock"], ("A", "B")),
        (["20261123T181804Z-vm"], ["stock"], ("A", "B")),
        (["x" * 25], ["stock"], ("A", "B")),
        (["rt\x1b"], ["stock"], ("A", "B")),
        ([".."], ["stock"], (Path("..").resolve().name, "stock")),
    ],
)
def test_names_of_sides(a: list[str], b: list[str], names: tuple[str, str]) -> None:
    usable = all(0 < len(name) <= 24 and any(map(str.isalpha, name)) for name in names)
    assert run_sets.names_of_sides([*map(Path, a)], [*map(Path, b)]) == (names if usable else ("A", "B"))


def test_other_quantities_are_refused_and_other_conditions_unless_that_is_compared(
    sides: tuple[Path, Path], capsys: pytest.CaptureFixture[str], refused: Callable[..., str]
) -> None:
    runs(Path("gpio"), 5, first=10, series=replace(SERIES, probe="gpio"))
    said = refused("compare", "rt", "--against", "gpio", "--although-different")
    assert "probe is 'timer' in rt and 'gpio' in gpio: two different quantities" in said
    runs(Path("slow"), 5, first=15, series=replace(SERIES, period_ns=2_000_000))
    assert "period is '1ms' in rt and '2ms' in slow" in refused("compare", "rt", "--against", "slow")
    for although in (["--although", "period,load"], ["--although-different"]):
        differences = found(capsys, "rt", "--against", "slow", *although)["differences"]
        assert "period" in json.dumps(differences)


def test_an_invalid_run_is_left_out_with_its_reason(
    sides: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    torn = Path("rt/09")
    begin = replace(BEGIN, run_id=bytes(15) + b"z")
    write_run(torn, latencies(9, 1_000), begin=begin, facts={"policy": "fifo"})
    cut = (torn / "run.rtrec").read_bytes()
    (torn / "run.rtrec").write_bytes(cut[: len(cut) // 3])
    broken = Path("rt/10")
    broken.mkdir()
    (broken / "run.rtrec").write_bytes(b"nonsense")
    capsys.readouterr()
    assert main(["compare", "rt", "--against", "stock", "--json", "--no-report"]) == 2
    said = json.loads(capsys.readouterr().out)
    told = json.dumps([said["left_out"], said["not_read"]])
    assert "rt/10" in told
    assert "is not a record" in told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["rt", "--against", "empty"], "there is no run in the folder empty"),
        (["rt", "--against", "rt/00"], "rt/00 stands on both sides, A and B"),
        (["rt", "--against", "stock", "-o", "page.pdf"], "no format of a report ends in .pdf"),
        (["rt", "--against", "stock", "--names", "old,old"], "--names takes two different names"),
        (["rt", "--against", "stock", "--names", "old,\x1b[2J"], "--names takes two different names"),
        (["rt", "--against", "stock", "--although", "weather"], "'weather' is none: load, period"),
        (["rt", "--against", "text.txt"], "text.txt"),
        (["rt", "--against", "stock", "--output", "empty"], "empty exists already"),
        (["rt", "--against", "stock", "--format", "pdf"], "pdf"),
        (["rt", "--against", "broken.rtrec"], "no run of broken can be read: broken.rtrec"),
    ],
)
def test_refusals(arguments: list[str], sentence: str, sides: tuple[Path, Path], refused: Callable[..., str]) -> None:
    Path("empty").mkdir()
    Path("text.txt").write_text("nothing that any tool prints\n")
    Path("broken.rtrec").write_bytes(b"RTP\x1a" + bytes(40))
    assert sentence in refused("compare", *arguments)
    assert not list(Path().glob("*.html"))


def test_a_copy_of_a_run_is_no_further_evidence(sides: tuple[Path, Path], refused: Callable[..., str]) -> None:
    copy = Path("stock/zz.rtrec")
    copy.write_bytes(Path("rt/00/run.rtrec").read_bytes())
    assert "one and the same run" in refused("compare", "rt", "--against", "stock")


def stalled(path: Path, seed: int) -> Path:
    """A record of a run that stood still for 400 ms once: 399 activations of those due never ran."""
    values = latencies(seed, N)
    values[500] = 400_000_000
    with RecordWriter(str(path)) as writer:
        writer.begin(replace(BEGIN, run_id=(seed + 50).to_bytes(16, "big")))
        writer.series(SERIES)
        feed = SeriesWriter(writer, SERIES)
        feed.add(values, [500], [399])
        writer.end(End((N + 399) * SERIES.period_ns, EndReason.AS_ASKED, "", (feed.finish(),)))
    return path


def test_the_schedule_counts_what_never_ran(sides: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    late = [str(stalled(Path(f"stalled{at}.rtrec"), 20 + at)) for at in range(5)]
    ran = found(capsys, *late, "--against", "rt")
    assert "1,995 activations of stalled never ran" in json.dumps(ran["sentences"])
    due = found(capsys, *late, "--against", "rt", "--view", "schedule")
    assert p99(ran) < 1.2
    assert p99(due) > 1_000
    assert "never ran" not in json.dumps(due["sentences"])


def p99(said: dict[str, object]) -> float:
    metrics = said["metrics"]
    assert isinstance(metrics, list)
    return float(next(one["a_to_b_ratio"] for one in metrics if one["metric"] == "p99"))
