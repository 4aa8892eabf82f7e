# SPDX-License-Identifier: Apache-2.0
"""Beside a co-kernel every output says in its first lines that Linux's own threads were measured."""

import json
from dataclasses import replace

import campaign_cases
import numpy as np
import pytest
from analysis_records import fact
from comparison_cases import run_of
from doubt_cases import clean, files, said_of
from history_cases import stepped
from lab_cases import PLAIN, RT
from report_cases import system_file
from system_records import NO_COKERNEL, XENOMAI_3, config, missing
from test_lab_comparison import MAKING, comparison, read

from rtproof import report
from rtproof.compare.compare import compare_sides
from rtproof.compare.history import analyse_history
from rtproof.compare.run_metrics import RunFigures
from rtproof.experiment import lab_scenarios
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Requirement
from rtproof.record.contents import Moment, Record, SystemFile
from rtproof.report.blocks import Section
from rtproof.report.pages import campaign_page, ci_verdicts, comparison_page, history_page, kernel_comparison_page
from rtproof.report.pages.campaign_json import encode_campaign
from rtproof.report.pages.campaign_outcomes import NO_EXTRAS
from rtproof.report.pages.ci_verdicts import ci_junit
from rtproof.report.pages.comparison_page import ComparisonContext, encode_comparison
from rtproof.report.pages.history_page import encode_history
from rtproof.schema.published import analysis_dict
from rtproof.summary.measured_kernel import CoreThread, core_beside, core_threads
from rtproof.summary.summary_model import Severity

CORE = "Xenomai 3.2.1 (Cobalt)"
VERSION = system_file("/proc/xenomai/version", "3.2.1\n")
THERE = missing("/proc/xenomai", 21)
STAT = "/proc/xenomai/sched/stat"
THREADS = """\
CPU  PID    CLASS  TYPE      PRI   TIMEOUT       STAT       NAME
  0  0      idle   core       -1   -             R          [ROOT/0]
  2  0      idle   core       -1   -             R          [ROOT/2]
  {cpu}  817    rt     cobalt     {priority}   -             W          sampling 817
  2  6277   weak   cobalt      0   428ms75us     D          part time
"""


def beside(*more: SystemFile, agent: int = 817) -> Record:
    """A clean run on a kernel with Cobalt. agent: the number of the agent's process."""
    made = clean()
    return replace(
        made,
        files=(*files({}), VERSION, THERE, *more),
        facts=(*made.facts, fact("agent_pid", agent, Moment.START)),
    )


def analysed(limits: int = 1) -> Analysis:
    return analyse(
        beside(), [Requirement.usual(limit, 60 * 10**9) for limit in (500_000, 600_000, 700_000)[:limits]], 1
    )


def text(parts: list[Section]) -> str:
    return report.render("text", "a title", parts).decode()


def unfolded(parts: list[Section]) -> str:
    """Without line breaks in the cells of tables."""
    return report.render("markdown", "a title", parts).decode()


def tables_without_mark(shown: str, names: tuple[str, ...]) -> list[str]:
    """Lines that name a system and do not say that its figures are in-band."""
    return [
        line for line in shown.splitlines() if any(name in line for name in names) and "in-band" not in line.lower()
    ]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (VERSION, CORE),
        (missing("/sys/class/evl", 21), "EVL (Xenomai 4)"),
        (missing("/proc/rtai", 21), "RTAI"),
        (system_file("kernel-log", "[Xenomai] Cobalt v3.2.4\n"), "Xenomai 3.2.4 (Cobalt)"),
    ],
)
def test_each_core_is_the_first_doubt(file: SystemFile, name: str) -> None:
    found = said_of(clean(files=(*files({}), file)))
    assert set(found) == {"in-band"}
    assert found["in-band"].severity is Severity.WARNING
    assert found["in-band"].what.startswith(f"in-band: {name} runs beside Linux, and what was measured is Linux's own")


def test_linux_alone_is_no_doubt() -> None:
    assert core_beside(clean()) is None
    assert said_of(clean(files=(*files({}), missing("/proc/xenomai")))) == {}


@pytest.mark.parametrize("option", ["XENOMAI", "EVL"])
def test_a_core_that_was_built_in_but_shows_nowhere_is_the_first_doubt(option: str) -> None:
    hidden = replace(clean(), files=(*files({}), config(f"CONFIG_{option}=y\n"), *NO_COKERNEL))
    found = said_of(hidden)
    assert set(found) == {"core-unseen"}
    assert f"CONFIG_{option} in /proc/config.gz" in found["core-unseen"].what
    shown = text(report.compose(analyse(hidden, None, 1)))
    assert "whether a co-kernel runs beside Linux is not known" in " ".join("\n".join(shown.splitlines()[:12]).split())


def test_a_core_that_shows_is_not_called_hidden_and_one_left_out_is_no_doubt() -> None:
    assert set(said_of(replace(beside(), files=(*beside().files, config("CONFIG_XENOMAI=y\n"))))) == {"in-band"}
    left_out = config("# CONFIG_XENOMAI is not set\nCONFIG_DOVETAIL=y\n")
    assert said_of(clean(files=(*files({}), left_out, *NO_COKERNEL))) == {}


def test_a_report_says_it_first_and_in_every_table_of_threads() -> None:
    shown = text(report.compose(analysed()))
    assert "in-band" in "\n".join(shown.splitlines()[:8]).lower()
    assert "in-band" in report.title(analysed())
    assert unfolded(report.compose(analysed())).count("| thread 0, in-band |") >= 4
    assert "in-band" not in text(report.compose(analyse(clean(), None, 1))).lower()


def test_each_claim_says_it() -> None:
    for verdict in analysed(3).verdicts:
        assert f"1 thread, in-band beside {CORE};" in " ".join(verdict.reasons)


@pytest.mark.parametrize("limits", [0, 1, 3])
def test_every_analysis_names_the_core_in_its_json(limits: int) -> None:
    assert analysis_dict(analysed(limits))["record"]["core"] == CORE
    assert analysis_dict(analyse(clean(), None, 1))["record"]["core"] is None


def test_ci_outputs_say_it_with_every_claim() -> None:
    row = ci_verdicts.run_row("a run", analysed(3))
    assert [claim.text.endswith(", in-band") for claim in row.claims] == [True] * 3
    for shown in (ci_verdicts.ci_text([row]), ci_verdicts.ci_markdown([row]), ci_junit([row])):
        assert shown.decode().count("in-band") >= 3
    assert ci_verdicts.run_row("a run", analyse(beside(), None, 1)).claims[0].text == "no limit, in-band"


def test_a_profile_says_it_of_the_system_in_every_table() -> None:
    profile = campaign_cases.shortened("bootlin-xenomai")
    outcomes = [campaign_cases.outcome(profile, cell.key, analysed()) for cell in profile.cells]
    shown = text(campaign_page.campaign_sections(profile, outcomes, None))
    assert "IN-BAND" in "\n".join(shown.splitlines()[:8])
    assert (
        tables_without_mark(
            unfolded(campaign_page.campaign_sections(profile, outcomes, None)), (campaign_cases.SYSTEM,)
        )
        == []
    )
    assert "in-band" in campaign_page.campaign_title(profile, outcomes)
    told = json.loads(encode_campaign(profile, outcomes, None, NO_EXTRAS))
    assert [result["core"] for cell in told["cells"] for result in cell["results"]] == [CORE] * len(outcomes)


def test_the_lab_says_it_of_a_system_in_every_table() -> None:
    reading = replace(read(5_000), core=CORE)
    found = comparison((RT, {"idle": reading}), (PLAIN, {"idle": [9_000]}))
    shown = text(kernel_comparison_page.terminal_sections(found))
    assert "in-band" in "\n".join(shown.splitlines()[:8])
    assert tables_without_mark(shown, (RT.name,)) == []
    assert f"{PLAIN.name} (in-band)" not in shown
    whole = text(kernel_comparison_page.page_sections(found, MAKING))
    assert tables_without_mark(whole, (f"{RT.name},", f"{RT.name} stayed")) == []
    told = kernel_comparison_page.comparison_dict(found, MAKING)
    assert [shift["core"] for cell in told["cells"] for shift in cell["shifts"]] == [CORE, None]
    assert [each["name"] for each in told["systems"]] == [RT.name, PLAIN.name]


def test_lab_check_says_it_before_the_figure(capsys: pytest.CaptureFixture[str]) -> None:
    reading = replace(read(5_000), core=CORE)
    assert lab_scenarios.judge_kernel(comparison((RT, {"idle": reading})), 10_000) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith(f"in-band: {CORE} runs beside Linux on {RT.name}; what was measured is Linux's own thread.")
    assert second.startswith(f"{RT.name} (in-band), idle: the largest latency")
    lab_scenarios.judge_kernel(comparison((RT, {"idle": [5_000]})), 10_000)
    assert "in-band" not in capsys.readouterr().out


def test_a_comparison_says_it_of_each_run() -> None:
    sides = [[campaign_run(side, number) for number in range(5)] for side in "ab"]
    found = compare_sides(sides[0], sides[1], ("A", "B"))
    told = ComparisonContext(("one", "another"))
    shown = text(comparison_page.comparison_sections(found, told))
    assert "In-band" in "\n".join(shown.splitlines()[:8])
    assert all(f"a{number} (in-band)" in shown for number in range(5))
    assert "b1 (in-band)" not in shown
    runs = [run["core"] for side in json.loads(encode_comparison(found, told))["sides"] for run in side["runs"]]
    assert runs == [CORE] * 5 + [None] * 5


def test_a_history_says_it_of_each_run() -> None:
    found = analyse_history([replace(run, facts={**run.facts, "kernel beside Linux": CORE}) for run in stepped(30)])
    shown = text(history_page.history_sections(found, ComparisonContext(())))
    assert "In-band" in "\n".join(shown.splitlines()[:8])
    assert "run 03 (in-band)" in unfolded(history_page.history_sections(found, ComparisonContext(())))
    (sequence,) = json.loads(encode_history(found, ComparisonContext(())))["sequences"]
    assert {run["core"] for run in sequence["runs"]} == {CORE}


def test_a_task_of_the_core_on_a_measured_cpu_is_a_doubt() -> None:
    """Whatever its priority: no thread of Linux comes before it."""
    path = "/proc/xenomai/sched/threads"
    for priority in (99, 1):
        table = THREADS.format(cpu=2, priority=priority)
        doubt = said_of(beside(system_file(path, table), agent=5))["core-tasks"]
        assert doubt.what == (
            f"1 task of the co-kernel could delay what was measured: sampling 817 (PID 817, priority {priority}, CPU 2)"
        )
    elsewhere = beside(system_file(path, THREADS.format(cpu=3, priority=99)), agent=5)
    assert set(said_of(elsewhere)) == {"in-band"}


def test_a_task_that_came_during_the_run_is_seen_at_its_end() -> None:
    path = "/proc/xenomai/sched/threads"
    late = system_file(path, THREADS.format(cpu=2, priority=50), Moment.END)
    assert "core-tasks" in said_of(beside(system_file(path, "CPU  PID  CLASS  PRI  NAME\n"), late, agent=5))


def test_threads_of_evl_are_read_from_their_folders() -> None:
    place = "/sys/devices/virtual/thread/{}/sched"
    made = replace(
        clean(),
        files=(
            *files({}),
            missing("/sys/class/evl", 21),
            system_file(place.format("lat-sampler:2136"), "2 98 98 fifo\n"),
            system_file(place.format("idler:7"), "2 0 0 weak\n"),
            missing(place.format("gone:9")),
            system_file(place.format("odd:8"), "what is this"),
        ),
    )
    assert core_threads(made) == (CoreThread(2136, "lat-sampler", 2, 98, "fifo"), CoreThread(7, "idler", 2, 0, "weak"))
    assert "lat-sampler (PID 2136, priority 98, CPU 2)" in said_of(made)["core-tasks"].what


def test_mode_switches_of_a_measured_thread_make_the_run_invalid() -> None:
    ends = (system_file(STAT, XENOMAI_3.format(3)), system_file(STAT, XENOMAI_3.format(90), Moment.END))
    doubt = said_of(beside(*ends))["mode-switches"]
    assert doubt.severity is Severity.INVALID
    assert "817 sampling-817 by 87" in doubt.what
    assert "mode-switches" not in said_of(beside(*ends, agent=5))
    steady = (ends[0], system_file(STAT, XENOMAI_3.format(3), Moment.END))
    assert "mode-switches" not in said_of(beside(*steady))


def campaign_run(side: str, number: int) -> RunFigures:
    drawn = np.random.default_rng(number).gamma(4.0, 5_000.0 if side == "a" else 9_000.0, 4_000).astype(np.int64) + 1
    extra = {"kernel beside Linux": CORE} if side == "a" else {}
    return run_of(drawn, f"{side}{number}", **extra)
