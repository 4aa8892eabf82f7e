# SPDX-License-Identifier: Apache-2.0
"""The Python API: its surface, and that it says what the command line says."""

import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import api_reference
import api_surface
import api_user_script
import msgspec
import numpy as np
import pytest
from analysis_records import BEGIN, MS, SERIES
from run_folders import INFO, latencies, write_record, write_run

import rtproof
from rtproof.api import samples as samples_module
from rtproof.api.measuring import START
from rtproof.api.opened_run import Run
from rtproof.cli.main import main
from rtproof.record.contents import Block, End, EndReason
from rtproof.record.writing import RecordWriter, SeriesWriter

DATA = Path(__file__).parent / "data"
GOLDEN = DATA / "golden"
CAMPAIGN = DATA / "written_by_537db1b" / "campaign"
RECORDS = ("x86_64-1.3", "aarch64", "ppc-1.2", "timerlat", "recorder-1.6", "vector-1.2")
"""One of each version and kind; all architectures wrote the same."""
HISTOGRAMS = ("histogram.txt", "result.json", "stall.json")


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """The JSON that a command prints."""
    main([str(word) for word in (*words, "--json")])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


# The surface.


def test_the_surface_changes_only_on_purpose() -> None:
    kept = (DATA / "api.txt").read_text().splitlines()
    assert list(api_surface.surface()) == kept, "on purpose? then: python tests/api_surface.py > tests/data/api.txt"


def test_the_reference_is_made_of_the_docstrings(tmp_path: Path) -> None:
    api_reference.main([str(tmp_path / "reference.md")])
    if (tmp_path / "reference.md").read_text() != api_reference.PAGE.read_text():
        pytest.fail("docstrings have changed: run python tools/api_reference.py")


def test_the_import_costs_nothing_before_a_name_is_used() -> None:
    program = (
        "import sys, rtproof; print(rtproof.__version__, sorted({'numpy', 'click', 'msgspec'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=1) == [rtproof.__version__, "[]\n"]


def test_a_users_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "old", latencies(1, 2_000))
    api_user_script.main(str(tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == [str(tmp_path / "old"), str(tmp_path / "1")]
    assert lines[2].startswith("probe is 'simulated' in fresh and 'timer' in old")
    assert [line.split()[2] for line in lines[:2]] == ["False", "False"]
    assert lines[-1].startswith("there is nothing here does not exist")


# What it says is what the command line says.


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with limits that were fixed before the run."""
    folder = tmp_path_factory.mktemp("fresh") / "run"
    rtproof.run(
        target="simulated",
        target_options={"episodes": "2/min", "seed": 3},
        duration="40s",
        limit=["90us", "150us"],
        at_most="1/min",
        output=folder,
        note="<script>",
    )
    return folder


def check_figures(found: rtproof.Figures, told: dict[str, Any]) -> None:
    counts = ("obtained_count", "missed_count", "lost_count", "expected_count", "min_ns", "max_ns")
    own = (found.n, found.missed, found.lost, found.due, found.min_ns, found.max_ns)
    assert own == tuple((told | told["observed"]).get(key) for key in counts)
    assert found.observed.mean_ns == told["observed"]["mean_ns"]
    keys = ("share_ratio", "value_ns", "low_ns", "high_ns")
    assert [(each.share, each.value_ns, each.low_ns, each.high_ns) for each in found.observed.quantiles] == [
        tuple(each[key] for key in keys) for each in told["observed"]["quantiles"]
    ]
    assert (found.schedule and found.schedule.max_ns) == (told["schedule"] and told["schedule"]["max_ns"])
    if found.schedule:
        assert (found.offset_ns, found.jitter_ns) == (told["spread"]["offset_ns"], told["spread"]["jitter_ns"])


def check_run(run: rtproof.Run, told: dict[str, Any]) -> None:
    assert json.loads(run.to_json()) == told
    check_figures(run.summary().pooled, told["pooled"])
    for one, of_thread in zip(run.summary().threads, told["threads"], strict=True):
        check_figures(one, of_thread)
    assert [doubt.code for doubt in run.doubts] == [doubt["code"] for doubt in told["doubts"]]
    check_verdict(run.verdict(), told["verdict"])


def check_verdict(found: rtproof.Verdict, told: dict[str, Any]) -> None:
    assert (found.state.value, found.exit_code) == (told["state"], told["exit_code"])
    assert found.limit_ns == (told["requirement"] or {}).get("limit_ns")
    keys = ("measured_ns", "more_ns", "needed_ns", "exceedances_observed_count", "chosen_after", "rate_high_per_s")
    mine = (found.measured_ns, found.more_ns, found.needed_ns, found.exceedances_observed, found.chosen_after)
    assert (*mine, found.rate_high_per_s) == tuple(told[key] for key in keys)
    assert [(one.begin_ns, one.worst_ns) for one in found.episodes or ()] == [
        (one["begin_ns"], one["worst_ns"]) for one in told["episodes"] or ()
    ]


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_says_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = GOLDEN / f"{name}.rtrec"
    run = rtproof.open(path)
    assert run.kind == "record"
    check_run(run, printed(capsys, "show", path))
    check_verdict(run.verdict("50us"), printed(capsys, "show", path, "--limit", "50us")["verdict"])


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_a_histogram_says_the_same_and_has_no_samples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "cyclictest" / name
    run = rtproof.open(str(path))
    assert (run.kind, run.tool) == ("histogram", "cyclictest" if name.endswith("txt") else "cyclictest --json")
    check_run(run, printed(capsys, "show", path))
    assert run.threads
    with pytest.raises(rtproof.RtproofError, match=r"histogram that cyclictest.* printed: it holds no single samples"):
        run.samples()


def test_a_fresh_run_says_the_same(fresh: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = rtproof.open(fresh)
    told = printed(capsys, "show", fresh)
    assert (run.kind, run.note, run.system) == ("run", "<script>", "simulated")
    check_run(run, told)
    for found, each in zip(run.verdicts()[1:], told["verdicts"], strict=True):
        check_verdict(found, each)
    assert run.report(tmp_path / "page.html").read_bytes().startswith(b"<!doctype html>")


def test_a_limit_that_is_stated_decides(fresh: Path) -> None:
    run = rtproof.open(fresh)
    late = run.verdict(90_000, at_most="1/10s")
    assert late.chosen_after
    assert late.state is rtproof.State.UNDECIDED
    stated = run.verdict("1s", at_most="1/s", confidence=0.9, longest="100ms", gap="10ms", fixed_beforehand=True)
    assert (stated.chosen_after, stated.confidence, stated.longest_ns) == (False, 0.9, 100_000_000)
    assert stated.state is rtproof.State.PROVEN


def test_causes_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    path = GOLDEN / "recorder-1.6.rtrec"
    told = printed(capsys, "explain", path)
    found = rtproof.open(path).causes()
    assert json.loads(found.to_json()) == told
    assert found.traced
    assert (found.late, found.explained) == (told["late_count"], told["explained_count"])
    assert [(one.cause.cause.value, one.share) for one in found.causes] == [
        (one["cause"], one["share_ratio"]) for one in told["causes"]
    ]
    for budget in found.budgets:
        assert sum(part.length_ns for part in budget.parts) == budget.activation.latency_ns


# Samples.


@pytest.mark.parametrize("name", ["x86_64-1.3", "ppc-1.2", "timerlat"])
def test_samples_are_those_of_the_export(name: str, tmp_path: Path) -> None:
    path, table = GOLDEN / f"{name}.rtrec", tmp_path / "a.csv"
    assert main(["export", str(path), "--format", "csv", "--output", str(table)]) == 0
    head, *rows = [line.split(",") for line in table.read_text().splitlines() if not line.startswith("#")]
    run = rtproof.open(path)
    judged = json.loads(run.to_json())["threads"][0]["series"]["field"]
    rows = [row for row in rows if "field" not in head or row[head.index("field")] == judged]
    samples = run.samples()
    for column, array in (("thread", samples.thread), ("due_ns", samples.due_ns), ("latency_ns", samples.latency_ns)):
        assert array.tolist() == [int(row[head.index(column)]) for row in rows]
    assert samples.ran.all()
    pooled = run.summary().pooled
    assert (len(samples), samples.latency_ns.max()) == (pooled.observed.n, pooled.max_ns)
    assert samples.origin_ns == json.loads(run.to_json())["record"]["origin_realtime_ns"]


def record_with_gaps(path: Path, values: Any, position: list[int], missed: list[int]) -> Path:
    with RecordWriter(str(path)) as writer:
        writer.begin(BEGIN)
        writer.series(SERIES)
        feed = SeriesWriter(writer, SERIES)
        feed.add(values, position, missed)
        end_ns = (values.size + sum(missed)) * SERIES.period_ns
        writer.end(End(end_ns, EndReason.AS_ASKED, "", (feed.finish(),)))
    return path


def test_the_schedule_view_has_the_missed_activations_too(tmp_path: Path) -> None:
    values = latencies(1, 3_000)
    values[500], values[1_000] = 10 * MS + 7, 3 * MS + 1
    run = rtproof.open(record_with_gaps(tmp_path / "a.rtrec", values, [500, 1_000], [10, 3]))
    samples, pooled = run.samples(view="schedule"), run.summary().pooled
    assert pooled.schedule
    assert pooled.missed == 13
    assert (len(samples), samples.latency_ns.max(), (~samples.ran).sum()) == (
        pooled.schedule.n,
        pooled.schedule.max_ns,
        pooled.missed,
    )
    assert (np.diff(samples.due_ns) > 0).all()
    assert np.array_equal(samples.latency_ns[samples.ran], run.samples().latency_ns)


def test_samples_of_one_thread() -> None:
    run = rtproof.open(GOLDEN / "x86_64-1.3.rtrec")
    both = run.samples()
    for thread in run.threads:
        one = run.samples(thread=thread.number)
        assert np.array_equal(one.latency_ns, both.latency_ns[both.thread == thread.number])


def test_a_long_record_is_read_piece_by_piece(tmp_path: Path) -> None:
    """The record is read as far as the pieces were taken, and no further."""
    path = write_record(tmp_path / "a.rtrec", latencies(1, 200_000))
    run = rtproof.open(path)
    samples = run.samples()
    record, read = samples._record, []

    def counted(refs: Any) -> Any:
        for ref in refs:
            read.append(ref)
            yield from record.read_blocks((ref,))

    counting = replace(samples, _record=replace(record, read_blocks=counted))
    first = next(counting.chunks())
    assert 0 < len(first) <= samples_module.MOST_ROWS
    assert len(read) == 1 < len(record.chunk_refs)
    assert sum(len(chunk) for chunk in samples.chunks()) == 200_000


def test_a_stall_of_any_length_fits_into_memory() -> None:
    """A thread that did not run for a day at a period of 10 us missed 8.6 thousand million activations."""
    missed = 86_400 * 100_000
    block = Block(0, 0, 0, np.array([missed * 10_000, 7]), np.array([0]), np.array([missed]))
    series = replace(SERIES, period_ns=10_000)
    chunks = samples_module._chunks_of_block(series, block, with_missed=True)
    first = next(chunks)
    assert len(first) == samples_module.MOST_ROWS
    assert first.ran.tolist() == [True, *[False] * (len(first) - 1)]
    assert set(np.diff(first.latency_ns)) == {-10_000}
    assert set(np.diff(first.due_ns)) == {10_000}
    observed = list(samples_module._chunks_of_block(series, block, with_missed=False))
    assert [chunk.latency_ns.tolist() for chunk in observed] == [[missed * 10_000, 7]]


# Several runs.


def sides(folder: Path, n: int, factor: float) -> None:
    """Runs of a and b by turns."""
    for at in range(n):
        for name, seed, how in (("a", at, 1.0), ("b", 100 + at, factor)):
            started = datetime.fromtimestamp(1_700_000_000 + 120 * at + 60 * (name == "b"), UTC).isoformat()
            info = msgspec.structs.replace(INFO, started=started)
            write_run(folder / name / f"{at:02}", latencies(seed, 3_000, how), info)


def test_a_comparison_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides(tmp_path, 5, 2.0)
    a, b = tmp_path / "a", tmp_path / "b"
    told = printed(capsys, "compare", a, "--against", b, "--no-report")
    archive = rtproof.open_archive(b)
    for other in (b, archive, list(archive), archive.paths):
        found = rtproof.compare(a, other, names=("a", "b"))
        own = json.loads(found.to_json())
        for key in ("finding", "metrics", "sentences", "differences", "order"):
            assert own[key] == told[key]
    assert found.refusal is None
    assert found.finding == told["finding"]
    assert [one.ratio for one in found.effects] == [one["a_to_b_ratio"] for one in told["metrics"]]


def test_a_refusal_is_a_result(tmp_path: Path) -> None:
    write_run(tmp_path / "a", latencies(1, 2_000), series=SERIES)
    write_run(tmp_path / "b", latencies(2, 2_000), series=replace(SERIES, period_ns=2 * MS))
    found = rtproof.compare(tmp_path / "a", tmp_path / "b")
    assert (found.finding, found.better, found.effects) == ("refused", None, ())
    assert found.refusal
    assert found.refusal.startswith("period is '1ms' in a")
    assert rtproof.compare(tmp_path / "a", tmp_path / "b", although="period").refusal is None


def test_a_history_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides(tmp_path, 11, 3.0)
    told = printed(capsys, "history", tmp_path, "--no-report")
    found = rtproof.history(tmp_path)
    assert json.loads(found.to_json())["sequences"] == told["sequences"]
    assert len(found.runs) == 22
    by_name = rtproof.history(tmp_path, by_name=True)
    assert by_name.judged
    (change,) = by_name.changes
    assert change.run == str(tmp_path / "b" / "00")
    assert all(ratio > 2 for metric, ratio in change.metrics if metric.startswith("p"))


def test_an_archive_is_in_the_order_of_time(tmp_path: Path) -> None:
    sides(tmp_path, 3, 1.0)
    (tmp_path / "broken.rtrec").write_bytes(b"nothing")
    archive = rtproof.open_archive(tmp_path)
    assert [path.parent.name for path in archive.paths] == list("ababab")
    assert [run.path for run in archive] == list(archive.paths)
    assert [run.path.name for run in archive[1:3]] == ["00", "01"]
    assert [path.name for path, _ in archive.unreadable] == ["broken.rtrec"]


# Refusals: one sentence each.

REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no such path": (lambda here: rtproof.open(here / "x"), "x does not exist: name a run folder"),
    "empty folder": (rtproof.open, "is not a run folder: it has no run.rtrec"),
    "no archive": (rtproof.open_archive, "there is no run in the folder"),
    "campaign": (lambda _: rtproof.open(CAMPAIGN), "rtproof.open_archive opens all of its runs"),
    "facts": (lambda _: rtproof.open(GOLDEN / "facts-1.7-x86_64.rtrec"), "rtproof audit"),
    "unit": (lambda _: one().verdict("5"), "limit: the duration '5' has no unit"),
    "truth as limit": (lambda _: one().verdict(True), "and no bool"),
    "gap": (lambda _: one().verdict("5us", gap="1h"), "gap: '1h' is not a gap"),
    "longest": (lambda _: one().verdict("5us", longest="1us"), "longest: '1us' is too short"),
    "no limit": (lambda _: one().verdict(at_most="1/h"), "need a limit"),
    "thread": (lambda _: one().samples(thread=7), "there is no thread 7 in .*: its threads are 0, 1"),
    "view": (lambda _: one().samples(view="all"), "view: 'all' is none of"),  # type: ignore[arg-type]
    "summary only": (
        lambda _: rtproof.open(GOLDEN / "vector.rtrec").samples(),
        "keeps a summary and no single samples",
    ),
    "share": (lambda _: one().summary(shares=[99.5]), "a share lies between 0 and 1"),
    "histogram's causes": (lambda _: rtproof.open(DATA / "cyclictest" / "histogram.txt").causes(), "a histogram: show"),
    "same run": (lambda _: rtproof.compare(one(), one()), "stands on both sides"),
    "although": (lambda _: rtproof.compare(one(), one(), although="colour"), "'colour' is none"),
    "truth": (lambda _: bool(one().verdict()), "neither true nor false"),
    "path with NUL": (lambda _: rtproof.open("a\0b"), "a path has a NUL character"),
    "note with NUL": (lambda _: rtproof.run(note="a\0b"), "note has a NUL character"),
    "options": (lambda _: rtproof.run(target_options=["a"]), "target_options: a dict"),  # type: ignore[arg-type]
    "no": (lambda _: one().verdict("1ms", fixed_beforehand="no"), "fixed_beforehand: True or False"),  # type: ignore[arg-type]
}


def one() -> rtproof.Run:
    return rtproof.open(GOLDEN / "x86_64-1.3.rtrec")


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_is_one_sentence(what: str, tmp_path: Path) -> None:
    call, sentence = REFUSED[what]
    with pytest.raises(rtproof.RtproofError) as refused:
        call(tmp_path)
    assert re.search(sentence, str(refused.value))
    assert "\n" not in str(refused.value)


def test_the_package_of_this_process_measures(tmp_path: Path) -> None:
    """Another rtproof that is installed does not stand in for the one that asks."""
    (tmp_path / "rtproof").mkdir()
    (tmp_path / "rtproof" / "__init__.py").write_text("raise SystemExit('the other one')\n")
    place = Path(rtproof.__file__).parents[1]
    started = [sys.executable, "-P", "-c", START, str(place), "--version"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    waiting, asking = os.pipe()  # The process ends itself once its input ends.
    said = subprocess.run(started, env=environment, stdin=waiting, capture_output=True, text=True, check=False)
    os.close(waiting)
    os.close(asking)
    assert rtproof.__version__ in said.stdout, said


def test_a_damaged_record(tmp_path: Path) -> None:
    content = (GOLDEN / "x86_64-1.3.rtrec").read_bytes()
    cut = tmp_path / "cut.rtrec"
    cut.write_bytes(content[: len(content) * 2 // 3])
    run = rtproof.open(cut)
    assert "truncated" in {doubt.code for doubt in run.doubts}
    assert run.samples().latency_ns.size
    (tmp_path / "lost.rtrec").write_bytes(content[2000:])
    with pytest.raises(rtproof.RtproofError, match=r"lost\.rtrec"):
        rtproof.open(tmp_path / "lost.rtrec")


def test_a_defect_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("rtproof.experiment.stored_runs.read_run", broken)
    with pytest.raises(ZeroDivisionError):
        one().summary()


# Notebooks, threads and other processes.


def test_what_a_notebook_shows_is_escaped(tmp_path: Path) -> None:
    run = rtproof.open(write_run(tmp_path / "run", latencies(1, 2_000)))
    verdict = replace(run.verdict("10us"), sentences=(("<b>", "<script>"),))
    for value in (run.summary(), verdict):
        shown = value._repr_html_()
        assert "http" not in shown
        assert "<script" not in shown
    assert "&lt;b&gt;" in verdict._repr_html_()


def test_results_can_be_pickled() -> None:
    run = one()
    again = pickle.loads(pickle.dumps(run))
    assert (again.path, again.summary()) == (run.path.absolute(), run.summary())
    for value in (run.summary(), run.verdict("50us"), run.doubts, rtproof.open(GOLDEN / "recorder-1.6.rtrec").causes()):
        assert pickle.loads(pickle.dumps(value)) == value
    assert str(pickle.loads(pickle.dumps(rtproof.RtproofError("no")))) == "no"


def test_threads_may_share_a_run() -> None:
    run = one()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: run.summary(), range(8)))
    assert found == [found[0]] * 8


def test_a_worker_of_multiprocessing_may_read_runs(tmp_path: Path) -> None:
    sides(tmp_path, 2, 1.0)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(Run.summary, (one(),)) == one().summary()
        assert len(pool.apply(rtproof.history, (tmp_path,)).runs) == 4
