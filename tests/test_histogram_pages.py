# SPDX-License-Identifier: Apache-2.0

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_folders import latencies, write_run
from test_histograms import FILE, HOUR_HISTOGRAM_ONLY, SATURATED, US_HISTOGRAM_ONLY

from rtproof import report
from rtproof.cli.main import main
from rtproof.compare.run_metrics import figures_of
from rtproof.core.errors import UserError
from rtproof.experiment import stored_runs
from rtproof.judge.analysis_model import Analysis, Requirement
from rtproof.judge.histogram_only import analyse_histogram
from rtproof.report.blocks import Table, Text
from rtproof.schema.published import analysis_dict
from rtproof.summary.imported_histogram import ImportedHistogram, ImportedPart

DATA = Path(__file__).parent / "data" / "cyclictest"


def test_show_says_what_a_histogram_carries(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(DATA / "histogram.txt"), "--limit", "100us", "--percentile", "75"]) == 4
    out = capsys.readouterr().out
    for words in ("UNDECIDED", "between 1 and 50 of 200 samples", "no time order", "75 %"):
        assert words in out


def test_show_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(DATA / "result.json"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["verdict"]["state"]) == ("rtproof.analysis", "NOT ASKED")
    assert told["imported"]["beyond_scale_count"] == 50


def test_limit_given_now_was_chosen_after_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    """Two seconds with an exceedance refute once per hour, if the limit was there before."""
    assert main(["show", str(DATA / "stall.json"), "--limit", "1ms"]) == 4
    assert "chosen after the data" in capsys.readouterr().out


def test_file_that_contradicts_itself_is_invalid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "hist.txt"
    wrong.write_text((DATA / "histogram.txt").read_text().replace("Overflows: 00013", "Overflows: 00000"))
    assert main(["show", str(wrong)]) == 3
    assert "thread 0 is 67 us, and its histogram ends at 49 us" in " ".join(capsys.readouterr().out.split())


def test_file_of_a_known_tool_without_sense_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torn = tmp_path / "hist.txt"
    torn.write_text("# Histogram\n000001 000001\n000002 00\t000003\n")
    assert main(["show", str(torn)]) == 2
    assert "columns" in capsys.readouterr().err


def test_only_files_of_known_tools_are_recognised(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", latencies(1, 100))
    other = tmp_path / "other.txt"
    other.write_text("hello")
    places = (run, run / "run.rtrec", run / "run.json", other, tmp_path / "none.txt")
    assert [stored_runs.is_histogram_file(place) for place in places] == [False] * len(places)
    assert stored_runs.is_histogram_file(DATA / "histogram.txt")


def test_figures_of_a_file_that_contradicts_itself_are_left_out_of_comparisons() -> None:
    found = stored_runs.read_histogram_file(DATA / "result.json")
    assert found
    told = figures_of(analyse_histogram(found), "result.json")
    assert (told.n, told.overflow, told.started_ns, told.invalid) == (200, 50, 1_795_216_821 * 10**9, ())
    assert figures_of(analyse_histogram(replace(found, faults=("no",)))).invalid == ("no",)
    with pytest.raises(UserError, match="nothing to compare"):
        figures_of(analyse_histogram(replace(found, histogram=None)))


def test_report_of_a_histogram_lies_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hist.txt"
    file.write_text((DATA / "histogram.txt").read_text())
    assert main(["report", str(file), "--limit", "100us"]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert page.parent == tmp_path
    assert "no time order" in page.read_text()


def test_fewer_samples_than_its_bins_hold_make_it_invalid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "latency.txt"
    wrong.write_text(
        "== Sampling period: 1000 us\n"
        "HSS|    avg|           5|      1.000|      0.100\n"
        "HSD|    avg|   1 -   2 |        50\n"
        "HSD|    avg|   8 -   9 |        50\n"
        "RTS|     1.0|     4.0|     8.5|       0|     0|    00:00:10/00:00:10\n"
    )
    assert main(["show", str(wrong), "--limit", "2us"]) == 3
    assert "says 5 samples" in " ".join(capsys.readouterr().out.split())


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


def test_judge_proves_a_clean_file_and_says_what_it_did_not_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit, page = tmp_path / "rtproof.xml", tmp_path / "rtproof.md"
    asked = ("judge", str(clean_file(tmp_path, 4)), *FIXED, "--junit", str(junit), "--markdown", str(page))
    assert main([*asked]) == 0
    for told in (capsys.readouterr().out, junit.read_text(), page.read_text()):
        plain = " ".join(told.split())
        assert "PROVEN" in plain
        assert "policy, priority, CPU, clock and load were not checked" in plain
        assert "every due activation is counted" in plain
        assert "fixed before the run (--fixed-beforehand); the run does not show it" in plain


def test_judge_does_not_prove_what_the_file_does_not_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", str(clean_file(tmp_path, 4, cycles=14_000_000)), *FIXED]) == 4
    assert "14,000,000 samples where 14,400,000 were due" in " ".join(capsys.readouterr().out.split())
    assert main(["judge", str(clean_file(tmp_path, 4, max_us=2000)), *FIXED]) == 4
    assert main(["judge", str(clean_file(tmp_path, 4)), "--limit", "100us"]) == 4


def test_stall_that_is_longer_than_an_episode_may_last_is_refuted(capsys: pytest.CaptureFixture[str]) -> None:
    """402 ms, and D is a quarter of a second for once per second."""
    assert main(["judge", str(DATA / "stall.json"), "--limit", "1ms", "--at-most", "1/1s", "--fixed-beforehand"]) == 1
    assert "one activation alone was late for 401 ms" in " ".join(capsys.readouterr().out.split())


def test_file_that_began_and_ended_in_the_same_second_did_not_last_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads((DATA / "result.json").read_text())
    told["end_time"] = told["start_time"]
    (tmp_path / "same.json").write_text(json.dumps(told))
    assert main(["judge", str(tmp_path / "same.json"), "--limit", "1ms", "--fixed-beforehand"]) == 1
    plain = " ".join(capsys.readouterr().out.split())
    assert "one episode in less than 1.0 s is too many" in plain
    assert "0 ns" not in plain


def jitterdebugger(folder: Path, hours: int) -> Path:
    """A file that tells neither its duration nor its period."""
    told = json.loads((DATA.parent / "jitterdebugger.json").read_text())
    n = hours * 3_600_000
    told["cpu"] = {"0": {"histogram": {"25": n}, "count": n, "min": 25, "max": 25, "avg": 25.0}}
    path = folder / "results.json"
    path.write_text(json.dumps(told))
    return path


def test_duration_and_period_that_the_user_states_are_told_as_the_users_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(jitterdebugger(tmp_path, 4))
    assert main(["judge", path, *FIXED]) == 4
    assert "does not tell how long it measured" in " ".join(capsys.readouterr().out.split())
    assert main(["judge", path, *FIXED, "--measured-for", "4h"]) == 4
    assert "does not tell the period" in " ".join(capsys.readouterr().out.split())
    assert main(["judge", path, *FIXED, "--measured-for", "4h", "--period", "1ms"]) == 0
    plain = " ".join(capsys.readouterr().out.split())
    assert "how long it measured is what the user states" in plain
    assert "the period of all threads is what the user states" in plain
    assert main(["judge", path, *FIXED, "--measured-for", "8h", "--period", "1ms"]) == 4, "half of them are missing"


def test_what_the_file_tells_itself_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(clean_file(tmp_path, 3))
    assert main(["judge", path, *FIXED, "--measured-for", "4h"]) == 4
    assert "the file itself tells how long it measured" in " ".join(capsys.readouterr().out.split())


def text(said: Analysis) -> str:
    return " ".join(report.render("text", report.title(said), report.compose(said)).decode().split())


def test_it_says_what_remains_with_n_and_what_does_not() -> None:
    shown = text(analyse_histogram(SATURATED, [Requirement(100 * US_HISTOGRAM_ONLY)]))
    assert shown.startswith("rtproof: UNDECIDED")
    for words in (
        "between 1 and 10 of 1,000 samples above 100 us",
        "if samples were independent",
        "the largest of 1,000 samples",
        "at most 50 %",
        "if it is alike (an equal maximum does not exceed it)",
        "95 % each, not both together",
        "5 % for m = 52",
        "at least 50.000",
        "the file has no time order",
        "may be missing from this run",
    ):
        assert words in shown, words
    for forbidden in ("worst case is", "guaranteed", "safe"):
        assert forbidden not in shown


def test_clean_histogram_tells_what_it_would_show_if_it_was_whole() -> None:
    shown = text(
        analyse_histogram(replace(FILE, duration_ns=10 * HOUR_HISTOGRAM_ONLY), [Requirement(100 * US_HISTOGRAM_ONLY)])
    )
    assert "0 of 1,000 samples above 100 us" in shown
    assert "only if it measured without a gap for the 10 h that it tells" in shown
    assert "once per 2 h 52 min" in shown


def test_threads_and_settings_of_the_tool_are_listed() -> None:
    told = replace(
        FILE,
        parts=(ImportedPart(0, 3, 1_000, 20 * US_HISTOGRAM_ONLY, 25 * US_HISTOGRAM_ONLY, 90 * US_HISTOGRAM_ONLY, 0),),
        priority=80,
        facts=(("a", "b"),),
    )
    shown = text(analyse_histogram(told))
    assert "thread 0 3 1,000 0 20.000 25.000 90.000" in shown
    assert "priority 80" in shown


def test_file_of_nothing_but_its_ends_has_a_report() -> None:
    shown = text(analyse_histogram(replace(FILE, histogram=None, count=None)))
    assert "quantiles and shares" in shown


def test_strings_of_the_file_cannot_hide_in_a_page() -> None:
    said = analyse_histogram(replace(FILE, title="<script>alert(1)</script>", facts=(("k", "<img src=x>"),)))
    page = report.render("html", report.title(said), report.compose(said)).decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_json_has_the_same_figures() -> None:
    told: Any = analysis_dict(analyse_histogram(SATURATED, [Requirement(100 * US_HISTOGRAM_ONLY)]))
    assert (told["verdict"]["state"], told["verdict"]["exit_code"]) == ("UNDECIDED", 4)
    assert told["imported"]["beyond_scale_count"] == 10
    (limit,) = told["verdicts"]
    assert (limit["above_least_count"], limit["above_most_count"]) == (1, 10)
    assert [q["beyond_scale"] for q in told["pooled"]["observed"]["quantiles"]] == [
        False,
        False,
        False,
        True,
        True,
        True,
        True,
    ]


def test_a_file_that_was_cut_off_has_no_bound_where_it_has_no_value() -> None:
    cut = replace(FILE, overflow=None, max_ns=None)
    shown = text(analyse_histogram(cut, [Requirement(100 * US_HISTOGRAM_ONLY)]))
    assert "an unknown number of 1,000 samples above 100 us" in shown
    assert "no bound of their share" in shown
    assert "at least 0" not in shown
    assert "What the verdict rests on" not in text(analyse_histogram(cut))


def test_what_the_file_lacks_stands_before_its_figures() -> None:
    def first(told: Analysis) -> str:
        (verdict, *_) = report.compose(told)
        return " ".join(word for block in verdict.blocks if isinstance(block, Text) for word in block.paragraphs)

    saturated = first(analyse_histogram(replace(SATURATED, notes=("it skips what is late",))))
    assert "10 of 1,000 samples lie beyond its scale" in saturated
    assert "it skips what is late" in saturated
    assert "is not told" in first(analyse_histogram(replace(SATURATED, overflow=None)))
    assert "scale" not in first(analyse_histogram(replace(FILE, overflow=0, notes=())))


def test_nothing_follows_from_the_maximum_of_a_file_that_contradicts_itself() -> None:
    shown = text(
        analyse_histogram(replace(FILE, faults=("its figures differ",)), [Requirement(100 * US_HISTOGRAM_ONLY)])
    )
    assert "so that nothing follows from it" in shown
    assert "probability" not in shown


def test_the_state_is_the_headline_and_the_tool_s_own_figures_are_all_told() -> None:
    given = replace(FILE, min_ns=8_720, mean_ns=32_946, max_ns=106_589, overruns=1, mode_switches=2)
    judged = analyse_histogram(given)
    assert [doubt.code for doubt in judged.doubts] == ["overruns", "mode-switches"]
    assert [doubt.code for doubt in analyse_histogram(replace(given, overruns=0, mode_switches=0)).doubts] == []
    verdict, _, remains, *_ = report.compose(judged)
    first = verdict.blocks[0]
    assert isinstance(first, Text)
    assert (first.headline, first.paragraphs) == (
        "NOT ASKED",
        ("The run was measured; no limit was given to judge it by.",),
    )
    (told,) = [block for block in remains.blocks if isinstance(block, Table) and block.caption == "What the tool tells"]
    rows = {row[0]: row[1] for row in told.rows}
    assert [rows[name] for name in ("smallest", "mean", "largest")] == ["8.720 us", "32.946 us", "106.589 us"]
    assert (rows["overruns"], rows["mode switches (msw)"]) == ("1", "2")
    assert "smallest" not in [row[0] for row in _told_of(replace(given, min_ns=None))]


def _told_of(given: ImportedHistogram) -> list[tuple[str, ...]]:
    _, _, remains, *_ = report.compose(analyse_histogram(given))
    return [row for block in remains.blocks if isinstance(block, Table) for row in block.rows if len(row) == 2]


def names(said: Analysis) -> list[str]:
    return [section.name for section in report.compose(said)]


def test_sections_that_need_time_are_not_drawn() -> None:
    said = analyse_histogram(replace(FILE, notes=("it skips what is late",)), [Requirement(100 * US_HISTOGRAM_ONLY)])
    told = ["verdict", "doubts", "tool", "percentiles", "histogram", "ccdf", "impossible"]
    assert names(said) == told
    assert not {"histogram", "ccdf"} & set(names(analyse_histogram(SATURATED))), "a picture would end at the scale"
    assert not {"histogram", "ccdf"} & set(names(analyse_histogram(replace(FILE, overflow=None))))
    assert "percentiles" not in names(analyse_histogram(replace(FILE, histogram=None)))


def test_a_picture_is_no_finer_than_the_file_and_claims_no_exact_maximum() -> None:
    shown = text(analyse_histogram(FILE))
    assert "in bins of 1 us" in shown
    assert "come from bins" not in shown
    assert "the largest of 1,000 activations is 90.999 us or less" in shown


def test_what_needs_time_is_null_in_json() -> None:
    told: Any = analysis_dict(analyse_histogram(FILE, [Requirement(100 * US_HISTOGRAM_ONLY)]))
    json.dumps(told, allow_nan=False)
    assert (told["record"], told["forecast"], told["objections"], told["levels"]) == (None, None, [], [])
    pooled, verdict = told["pooled"], told["verdict"]
    assert {pooled[key] for key in ("expected_count", "missed_count", "lost_count", "span_ns", "schedule", "lag")} == {
        None
    }
    assert {verdict[key] for key in ("episodes_count", "episodes", "rate_low_per_s", "measured_ns", "live_ns")} == {
        None
    }
    assert pooled["observed"]["deviation_ns"] is None
    assert pooled["observed"]["max_ns"] == 90 * US_HISTOGRAM_ONLY


def test_no_answer_claims_a_rate_that_a_decision_does_not_show() -> None:
    """A refuted file has episodes too often or one that is too long, and it does not show which."""
    short = replace(FILE, duration_ns=5 * 10**9)
    refuted = text(analyse_histogram(short, [Requirement(50 * US_HISTOGRAM_ONLY)]))
    assert "The requirement on latencies above 50 us does not hold at the confidence asked" in refuted
    assert "valid at any stopping time" not in refuted
    assert "more often than" not in refuted
    undecided = text(analyse_histogram(FILE, [Requirement(50 * US_HISTOGRAM_ONLY)]))
    assert "no length of the run is known to decide" in undecided


@pytest.mark.parametrize("limits", [(), ("100us",), ("100us", "30us")])
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
            told["thread"] = {str(cpu): {**one, "cpu": cpu} for cpu in range(16)}
        else:
            n = {"empty": {}, "one bin": {"25": 14_400_000}, "far bins": {"25": 14_399_997, "900000000": 3}}[change]
            one |= {"histogram": n, "max": max(map(int, n), default=0)}
        path.write_text(json.dumps(told))
    asked = [word for limit in limits for word in ("--limit", limit)]
    codes = {main(["show", str(path), *asked, *more]) for more in ((), ("--json",))}
    out = capsys.readouterr()
    assert codes == {4 if limits else 0}, out.err
    assert "no time order" in " ".join(out.out.split())


def test_each_thread_has_its_own_share_beyond_the_scale() -> None:
    found = stored_runs.read_histogram_file(DATA / "result.json")
    assert found
    told: Any = analysis_dict(analyse_histogram(found), (0.8, 0.9))
    beyond = [[q["beyond_scale"] for q in one["observed"]["quantiles"]] for one in (*told["threads"], told["pooled"])]
    assert [part.overflow for part in found.parts] == [13, 37]
    assert beyond == [[False, True], [True, True], [True, True]]
    assert (told["threads"][1]["series"]["cpu"], told["threads"][1]["series"]["first_due_ns"]) == (1, None)
