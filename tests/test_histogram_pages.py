# SPDX-License-Identifier: Apache-2.0

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_histograms import FILE

from rtproof import report
from rtproof.cli.main import main
from rtproof.compare.run_metrics import figures_of
from rtproof.core.errors import UserError
from rtproof.experiment import stored_runs
from rtproof.judge.histogram_only import analyse_histogram
from rtproof.schema.published import analysis_dict

DATA = Path(__file__).parent / "data" / "cyclictest"


def test_figures_of_a_file_that_contradicts_itself_are_left_out_of_comparisons() -> None:
    found = stored_runs.read_histogram_file(DATA / "result.json")
    assert found
    told = figures_of(analyse_histogram(found), "result.json")
    assert (told.n, told.overflow, told.started_ns, told.invalid) == (200, 50, 1_795_216_821 * 10**9, ())
    assert figures_of(analyse_histogram(replace(found, faults=("no",)))).invalid == ("no",)
    with pytest.raises(UserError, match="nothing to compare"):
        figures_of(analyse_histogram(replace(found, histogram=None)))


def clean_file(folder: Path, hours: int, *, max_us: int = 40, cycles: int | None = None) -> Path:
    """What cyclictest --json would write after so many hours at 1 ms in which nothing was late."""
    told = json.loads((DATA / "stall.json").read_text())
    n = hours * 3_600_000 if cycles is None else cycles
    told["start_time"], told["end_time"] = "Fri, 20 Nov 2026 00:00:00 +0000", f"Fri, 20 Nov 2026 {hours:02}:00:00 +0000"
    told["thread"]["0"] |= {
        "histogram": {"25": n - 1, str(max_us): 1},
        "cycles": n,
        "min": 25,
        "max": max_us,
        "avg": 25,
    }
    path = folder / "clean.json"
    path.write_text(json.dumps(told))
    return path


FIXED = ("--limit", "100us", "--at-most", "1/h", "--fixed-beforehand")


FEWER_THAN_ITS_BINS = """== Sampling period: 1000 us
HSS|    avg|           5|      1.000|      0.100
HSD|    avg|   1 -   2 |        50
HSD|    avg|   8 -   9 |        50
RTS|     1.0|     4.0|     8.5|       0|     0|    00:00:10/00:00:10
"""


def test_exit_codes_of_whole_files(tmp_path: Path) -> None:
    """A clean file proves, with a limit that was there before; what it lacks keeps it from that."""
    for options, arguments, code in (
        ({}, FIXED, 0),
        ({}, FIXED[:4], 4),
        ({"cycles": 14_000_000}, FIXED, 4),
        ({"max_us": 2000}, FIXED, 4),
    ):
        assert main(["judge", str(clean_file(tmp_path, 4, **options)), *arguments]) == code, options
    stall = str(DATA / "stall.json")
    assert main(["show", stall, "--limit", "1ms"]) == 1
    assert main(["show", stall, "--limit", "1ms", "--at-most", "1/h"]) == 4, "the limit was chosen after the data"
    assert main(["judge", stall, "--limit", "1ms", "--at-most", "1/1s", "--fixed-beforehand"]) == 1, "402 ms > D"
    contradicted = (DATA / "histogram.txt").read_text().replace("Overflows: 00013", "Overflows: 00000")
    for text in (contradicted, FEWER_THAN_ITS_BINS):
        (tmp_path / "wrong.txt").write_text(text)
        assert main(["show", str(tmp_path / "wrong.txt"), "--limit", "2us"]) == 3


def test_file_that_began_and_ended_in_the_same_second_did_not_last_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads((DATA / "result.json").read_text())
    told["end_time"] = told["start_time"]
    (tmp_path / "same.json").write_text(json.dumps(told))
    asked = ("--limit", "1ms", "--at-most", "1/h", "--fixed-beforehand")
    assert main(["judge", str(tmp_path / "same.json"), *asked]) == 1
    assert "one episode in less than 1.0 s is too many" in " ".join(capsys.readouterr().out.split())


def jitterdebugger(folder: Path, hours: int) -> Path:
    """A file that tells neither its duration nor its period."""
    told = json.loads((DATA.parent / "jitterdebugger.json").read_text())
    n = hours * 3_600_000
    told["cpu"] = {"0": {"histogram": {"25": n}, "count": n, "min": 25, "max": 25, "avg": 25.0}}
    path = folder / "results.json"
    path.write_text(json.dumps(told))
    return path


@pytest.mark.parametrize(
    ("stated", "code"),
    [
        ((), 4),
        (("--measured-for", "4h"), 4),
        (("--measured-for", "4h", "--period", "1ms"), 0),
        (("--measured-for", "8h", "--period", "1ms"), 4),
    ],
    ids=["nothing", "no period", "all", "half of the samples are missing"],
)
def test_the_user_may_state_duration_and_period(stated: tuple[str, ...], code: int, tmp_path: Path) -> None:
    assert main(["judge", str(jitterdebugger(tmp_path, 4)), *FIXED, *stated]) == code


def test_strings_of_the_file_cannot_hide_in_a_page() -> None:
    said = analyse_histogram(replace(FILE, title="<script>alert(1)</script>", facts=(("k", "<img src=x>"),)))
    page = report.render("html", report.title(said), report.compose(said)).decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize("limits", [(), ("100us", "30us")])
@pytest.mark.parametrize("change", ["empty", "one bin", "beyond only", "not told", "16 CPUs", "far bins", "cut"])
def test_every_odd_file_has_a_report_or_one_sentence(
    change: str, limits: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = "# Histogram\n000000 000000\n000001 000000\n# Min Latencies: 00050\n# Max Latencies: 00090\n"
    path = tmp_path / "hist.txt"
    if change in ("beyond only", "not told"):
        path.write_text(bare + ("# Histogram Overflows: 00100\n" if change == "beyond only" else ""))
    elif change == "cut":
        path.write_text((DATA / "histogram.txt").read_text()[:622])
    else:
        path = clean_file(tmp_path, 4)
        told = json.loads(path.read_text())
        one = told["thread"]["0"]
        if change == "16 CPUs":
            told |= {"num_threads": 16, "thread": {str(cpu): {**one, "cpu": cpu} for cpu in range(16)}}
        else:
            n = {"empty": {}, "one bin": {"25": 14_400_000}, "far bins": {"25": 14_399_997, "900000000": 3}}[change]
            count = sum(n.values())
            mean = sum(int(us) * each for us, each in n.items()) / max(count, 1)
            one |= {"histogram": n, "cycles": count, "min": min(map(int, n), default=0), "avg": mean}
            one |= {"max": max(map(int, n), default=0)}
        path.write_text(json.dumps(told))
    asked = [word for limit in limits for word in ("--limit", limit)]
    asked += ["--at-most", "1/h"] if limits else []
    codes = {main(["show", str(path), *asked, *more]) for more in ((), ("--json",))}
    out = capsys.readouterr()
    assert codes == {4 if limits else 0}, out.err


def test_each_thread_has_its_own_share_beyond_the_scale() -> None:
    found = stored_runs.read_histogram_file(DATA / "result.json")
    assert found
    told: Any = analysis_dict(analyse_histogram(found), (0.8, 0.9))
    beyond = [[q["beyond_scale"] for q in one["observed"]["quantiles"]] for one in (*told["threads"], told["pooled"])]
    assert [part.overflow for part in found.parts] == [13, 37]
    assert beyond == [[False, True], [True, True], [True, True]]
    assert (told["threads"][1]["series"]["cpu"], told["threads"][1]["series"]["first_due_ns"]) == (1, None)
