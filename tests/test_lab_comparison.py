# SPDX-License-Identifier: Apache-2.0
"""A comparison in all its forms: what it says, in which order, and that it never says it without its label."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import lab_tasks
import numpy as np
import pytest
from analysis_records import block, fact, record
from lab_cases import PLAIN, RT, keys_not_in_docs, load, matrix, system

from rtproof import report
from rtproof.judge.analyse import analyse
from rtproof.lab.cell_runner import TaskEnd, WorkerTask, run_tasks
from rtproof.lab.guest_cell import CellCost, CellSetting, GuestSystem
from rtproof.lab.kernel_comparison import (
    VIRTUAL_TIME,
    CellReading,
    KernelComparison,
    SystemUnderLoad,
    clearly_below,
    common_loads,
    loads_clearly_won,
    rank_systems,
    reading_of_analysis,
)
from rtproof.record.contents import Moment
from rtproof.report.blocks import Plot, Section, Table, Text
from rtproof.report.pages import kernel_comparison_page
from rtproof.report.pages.kernel_comparison_page import Provenance

MAKING = Provenance("rtproof lab compare --load mmap", "0.1.0", {"x86_64": "QEMU 7.2"}, {"x86_64": "a" * 64}, "zig 0")
FULL = system("debian-6.1", "preempt=full")
N = 200


def read(largest_ns: int, policy: str = "fifo", missed: int = 0) -> CellReading:
    values = np.full(N, 3_900)
    values[N // 2] = largest_ns
    facts = (fact("policy", "fifo"), fact("policy", policy, Moment.START, 0))
    ran = block(values.tolist(), {N // 2: missed} if missed else None)
    return reading_of_analysis(analyse(record([ran], facts=facts), None, 1), "none")


Column = tuple[GuestSystem, Mapping[str, list[int] | str | CellReading]]


def comparison(*columns: Column, shifts: int = 1) -> KernelComparison:
    """Per system and load: the largest latency of each shift, or why it failed, or a reading."""
    names = list(dict.fromkeys(name for _, cells in columns for name in cells))
    spots = tuple(_spot(each, name, cells[name]) for name in names for each, cells in columns)
    systems = tuple(each for each, _ in columns)
    return KernelComparison(
        systems, tuple(map(load, names)), CellSetting(), shifts, spots, CellCost(8.0, 4.0), 3, 1, 5.0
    )


def _spot(each: GuestSystem, name: str, cell: list[int] | str | CellReading) -> SystemUnderLoad:
    if isinstance(cell, str):
        return SystemUnderLoad(each, load(name), (), (cell,))
    return SystemUnderLoad(each, load(name), (cell,) if isinstance(cell, CellReading) else tuple(map(read, cell)))


USUAL: tuple[Column, ...] = ((RT, {"idle": [5_000], "mmap": [6_400]}), (PLAIN, {"idle": [5_100], "mmap": [704_000]}))


def tables(sections: list[Section]) -> dict[str, Table]:
    blocks = [each for section in sections for each in section.blocks]
    return {each.caption.split(" [")[0].split(";")[0]: each for each in blocks if isinstance(each, Table)}


def test_the_headline_names_the_first_and_the_last_with_their_loads() -> None:
    places = rank_systems(comparison(*USUAL))
    assert kernel_comparison_page.ranking_headline(places) == (
        "debian-6.1-rt stayed within 6.4 us (mmap); debian-6.1 preempt=none reached 704 us (mmap), 110.0 times as much."
    )


def test_like_figures_are_not_ranked_as_clear() -> None:
    found = comparison(
        (RT, {"idle": [5_000, 5_100, 5_000, 5_200], "mmap": [6_400] * 4}),
        (PLAIN, {"idle": [5_100] * 4, "mmap": [704_000] * 4}),
        shifts=4,
    )
    assert [each.name for each in loads_clearly_won(found, rank_systems(found)[0])] == ["mmap"]
    assert loads_clearly_won(found, rank_systems(found)[1]) == []


FOUR = [137_000, 271_000, 464_000, 634_000]
"""Four shifts of one cell, as they were measured."""


@pytest.mark.parametrize(
    ("below", "above", "clear"),
    [
        pytest.param([5_000] * 4, [5_100] * 4, True, id="exact figures, apart"),
        pytest.param([5_000] * 3, [500_000] * 3, False, id="three shifts"),
        pytest.param([5_000] * 4, [500_000] * 3, False, id="three shifts of one"),
        pytest.param(FOUR, [each + 500_000 for each in FOUR], False, id="ranges touch"),
        pytest.param(FOUR, [2_900_000] * 4, False, id="apart by less than the spread"),
        pytest.param(FOUR, [2_940_000] * 4, True, id="apart by more than the spread"),
        pytest.param([20_000] * 4, FOUR, True, id="the spread of the other, 6.8 times below"),
        pytest.param([30_000] * 4, FOUR, False, id="the spread of the other, 4.57 times below"),
        pytest.param([5_000] * 4, [5_000] * 4, False, id="equal"),
    ],
)
def test_maxima_differ_only_by_more_than_the_shifts_move_them(below: list[int], above: list[int], clear: bool) -> None:
    one, other = _spot(RT, "mmap", below), _spot(PLAIN, "mmap", above)
    assert clearly_below(one, other) is clear
    assert not clearly_below(other, one)


def test_with_few_shifts_the_page_says_that_nothing_is_clear() -> None:
    text, _ = [each for each in kernel_comparison_page.ranking_blocks(comparison(*USUAL)) if isinstance(each, Text)]
    assert text.paragraphs[0] == "No difference is called clear, because that takes 4 shifts or more (--shifts)."


def test_with_enough_shifts_the_page_names_the_loads_with_a_clear_difference() -> None:
    found = comparison(
        (RT, {"idle": [5_000, 5_100, 5_000, 5_050], "dd": [5_000, 5_100, 5_000, 5_050]}),
        (PLAIN, {"idle": [5_000, 5_200, 5_100, 5_050], "dd": [9_000, 9_100, 9_000, 9_050]}),
        shifts=4,
    )
    text, _ = [each for each in kernel_comparison_page.ranking_blocks(found) if isinstance(each, Text)]
    assert text.paragraphs[0] == (
        f"Under 1 of 2 loads (dd), the maxima of {RT.name} are below those of every other system by more than the "
        "shifts differ."
    )


def test_with_enough_shifts_the_page_says_if_no_difference_is_clear() -> None:
    alike = {"idle": [5_000, 5_100, 5_000, 5_050]}
    found = comparison((RT, alike), (PLAIN, alike), shifts=4)
    text, _ = [each for each in kernel_comparison_page.ranking_blocks(found) if isinstance(each, Text)]
    assert text.paragraphs[0] == (
        f"Under no load are the maxima of {RT.name} below those of every other system by more than the shifts differ."
    )


def test_systems_are_ranked_by_the_loads_that_all_have_figures_for() -> None:
    found = comparison(
        (RT, {"idle": [5_000], "dd": "the guest never spoke"}), (PLAIN, {"idle": [4_000], "dd": [9_000]})
    )
    assert common_loads(found) == [load("idle")]
    assert [place.system for place in rank_systems(found)] == [PLAIN, RT]
    text, _ = [each for each in kernel_comparison_page.ranking_blocks(found) if isinstance(each, Text)]
    assert "Ranked by 1 of 2 loads: those under which all systems have figures." in text.paragraphs


def test_a_system_without_any_figure_hinders_nobody() -> None:
    found = comparison((RT, {"idle": "does not boot"}), (PLAIN, {"idle": [4_000]}))
    assert [place.system for place in rank_systems(found)] == [PLAIN]
    assert (
        kernel_comparison_page.ranking_headline(rank_systems(found))
        == "debian-6.1 preempt=none stayed within 4 us (idle)."
    )
    nothing = comparison((RT, {"idle": "does not boot"}))
    assert (
        kernel_comparison_page.ranking_headline(rank_systems(nothing))
        == "There is no load under which every system has figures."
    )


def test_the_table_has_a_row_per_load_and_a_column_per_system() -> None:
    (grid,) = [each for each in kernel_comparison_page.latency_tables(comparison(*USUAL)) if isinstance(each, Table)]
    assert grid.caption == "min / mean / max latency [us] of the activations that ran, n = 200 per cell"
    assert grid.header == ("load", "debian-6.1-rt", "debian-6.1 preempt=none")
    assert grid.rows == (
        ("idle", "3.9 / 3.9 / 5.0", "3.9 / 3.9 / 5.1"),
        ("mmap", "3.9 / 3.9 / 6.4", "3.9 / 7.4 / 704.0"),
    )


def test_heat_is_the_logarithm_of_the_maximum() -> None:
    lines = [[_spot(RT, "a", [largest]) for largest in (4_000, 40_000, 400_000)], [_spot(RT, "b", "failed")]]
    assert kernel_comparison_page.heat_of(lines) == [[0.0, pytest.approx(0.5), 1.0], [None]]
    alike = kernel_comparison_page.heat_of([[_spot(RT, "a", [5_000]), _spot(RT, "a", [5_500])]])
    assert max(share for share in alike[0] if share is not None) < 0.1
    assert kernel_comparison_page.heat_of([[_spot(RT, "a", "failed")]]) == [[None]]


def test_many_systems_show_maxima_first() -> None:
    systems = [(system(f"kernel-{n}"), {"mmap": [5_000 + n]}) for n in range(5)]
    first, second = kernel_comparison_page.latency_tables(comparison(*systems))
    assert isinstance(first, Table)
    assert isinstance(second, Table)
    assert first.rows[0][:2] == ("mmap", "5.0")
    assert (bool(first.heat), first.folded, bool(second.heat), second.folded) == (True, False, False, True)


def test_shifts_show_the_largest_and_the_range() -> None:
    found = tables(
        kernel_comparison_page.terminal_sections(comparison((PLAIN, {"mmap": [9_000, 7_000, 8_000]}), shifts=3))
    )
    assert found["min / mean / max latency"].rows == (("mmap", "3.9 / 3.9 / 9.0"),)
    assert found["Range of the largest latency over 3 shifts"].rows == (("mmap", "7.0 to 9.0"),)


def test_missed_activations_have_a_table_where_there_are_some() -> None:
    assert "Missed activations" not in tables(kernel_comparison_page.terminal_sections(comparison(*USUAL)))
    late = comparison((PLAIN, {"dd": read(3_800_000, missed=3)}))
    assert tables(kernel_comparison_page.terminal_sections(late))["Missed activations"].rows == (("dd", "3"),)


def test_failed_and_invalid_cells_are_words_and_sentences() -> None:
    found = comparison((RT, {"a": "the guest never spoke", "b": read(5_000, "other")}))
    sections = {section.name: section for section in kernel_comparison_page.terminal_sections(found)}
    assert tables([sections["latencies"]])["min / mean / max latency"].rows == (("a", "failed"), ("b", "invalid"))
    failed, invalid = sections["faults"].blocks
    assert isinstance(failed, Text)
    assert isinstance(invalid, Text)
    assert failed.paragraphs == ("debian-6.1-rt, a: the guest never spoke",)
    assert invalid.paragraphs[0].startswith("debian-6.1-rt, b: policy fifo was asked for")
    assert found.exit_code == 2
    assert replace(found, spots=found.spots[1:]).exit_code == 3


def test_the_page_draws_a_tail_for_each_load_and_says_how_it_was_made() -> None:
    found = comparison(*USUAL)
    sections = {section.name: section for section in kernel_comparison_page.page_sections(found, MAKING)}
    plots = [each for each in sections["tails"].blocks if isinstance(each, Plot)]
    assert [plot.title.split(": ")[1] for plot in plots] == ["idle", "mmap"]
    assert [curve.name for curve in plots[1].curves] == [RT.name, PLAIN.name]
    assert plots[0].x_ends == plots[1].x_ends is not None
    assert plots[1].curves[1].x[-1] == 704.0
    assert plots[1].curves[1].y[-1] == 0.0
    made = tables([sections["made"]])
    values = {row[0]: row[1] for row in made["What was measured"].rows}
    assert values["QEMU"] == "QEMU 7.2"
    assert values["cells"] == "3 run now, 1 from the cache"
    assert values["time of this host"] == "5.0 s now; 8 s for all cells, 2.0 per virtual second"
    assert [row[0] for row in made["What was booted"].rows] == [RT.name, PLAIN.name]
    code = [each for each in sections["made"].blocks if isinstance(each, Text) and each.kind == "code"]
    assert code[0].paragraphs == (MAKING.command,)


def test_the_first_screen_has_the_loads_with_the_largest_latencies() -> None:
    cells = {"idle": [5_000], "mmap": [6_400], "net": [90_000]}
    found = comparison((RT, cells), (PLAIN, {"idle": [5_100], "mmap": [704_000], "net": "it did not boot"}))
    drawn = [
        each
        for section in kernel_comparison_page.page_sections(found, MAKING)
        for each in section.blocks
        if isinstance(each, Plot)
    ]
    assert [(plot.title.split(": ")[1], plot.foremost) for plot in drawn] == [
        ("idle", False), ("mmap", True), ("net", True),
    ]  # fmt: skip


FORMS: dict[str, Callable[[KernelComparison], str]] = {
    "text": lambda found: report.render("text", "t", kernel_comparison_page.terminal_sections(found)).decode(),
    "markdown": lambda found: report.render(
        "markdown", "t", kernel_comparison_page.readme_sections(found, MAKING)
    ).decode(),
    "html": lambda found: report.render("html", "t", kernel_comparison_page.page_sections(found, MAKING)).decode(),
    "json": lambda found: kernel_comparison_page.encode_comparison(found, MAKING).decode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_what_virtual_time_is(form: str) -> None:
    for found in (comparison(*USUAL), comparison((RT, {"idle": "does not boot"}))):
        text = " ".join(FORMS[form](found).replace("&#x27;", "'").split())
        assert VIRTUAL_TIME in text
        assert "worst case" not in text


def test_json_has_every_figure_in_nanoseconds() -> None:
    found = json.loads(kernel_comparison_page.encode_comparison(comparison(*USUAL), MAKING))
    assert (found["schema"], found["version"], found["time"]) == ("rtproof.lab.comparison", 1, "virtual")
    assert found["ranking"][1] == {"system": PLAIN.name, "load": "mmap", "max_ns": 704_000}
    cell = found["cells"][3]
    assert (cell["system"], cell["load"], cell["state"]) == (PLAIN.name, "mmap", "measured")
    assert (cell["shifts"][0]["values_count"], cell["shifts"][0]["max_ns"]) == (N, 704_000)
    assert found["systems"][1]["boot"] == ["preempt=none"]
    assert len(found["systems"][0]["machine_sha256"]) == 64


def test_every_key_of_the_json_is_on_the_page_about_it() -> None:
    told = json.loads(kernel_comparison_page.encode_comparison(comparison(*USUAL, shifts=2), MAKING))
    assert keys_not_in_docs({**told, "qemu": {}, "agents_sha256": {}}) == set()


def test_the_folder_of_a_cell_is_a_name_for_a_folder(tmp_path: Path) -> None:
    cells = matrix(tmp_path, "sched:groups=4/../x", systems=(system("own", "a b"),)).cells()
    assert cells[0].slug == "own_a_b_sched_groups=4_.._x__0"


def outcomes(*tasks: WorkerTask, jobs: int = 2) -> list[tuple[object, TaskEnd]]:
    told: list[tuple[object, TaskEnd]] = []
    run_tasks(tasks, jobs, lambda task, ended: told.append((task.key, ended)))
    return told


def test_each_task_is_told_of_once_with_what_it_returned() -> None:
    told = outcomes(*(WorkerTask(name, partial(lab_tasks.say, name)) for name in "abc"))
    assert sorted((key, ended.value, ended.failure) for key, ended in told) == [(n, n, "") for n in "abc"]


def test_a_task_runs_after_the_one_that_it_needs() -> None:
    late = WorkerTask("cell", partial(lab_tasks.say, "x"), needs="boot")
    assert [key for key, _ in outcomes(late, WorkerTask("boot", partial(lab_tasks.say, "y")), jobs=4)] == [
        "boot",
        "cell",
    ]


def test_tasks_run_at_the_same_time(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    told = outcomes(WorkerTask(1, partial(lab_tasks.meet, a, b)), WorkerTask(2, partial(lab_tasks.meet, b, a)))
    assert [ended.value for _, ended in told] == ["met", "met"]


def test_one_job_runs_one_after_the_other_in_their_order() -> None:
    told = outcomes(*(WorkerTask(n, partial(lab_tasks.say, str(n))) for n in range(3)), jobs=1)
    assert [key for key, _ in told] == [0, 1, 2]


def test_a_failure_is_a_sentence_and_stops_nobody_but_those_that_need_it() -> None:
    told = dict(
        outcomes(
            WorkerTask("bad", lab_tasks.refuse),
            WorkerTask("poor", partial(lab_tasks.say, "x"), needs="bad"),
            WorkerTask("good", partial(lab_tasks.say, "x")),
        )
    )
    assert told["bad"].failure == told["poor"].failure == "the guest never spoke"
    assert told["good"] == TaskEnd("x")


def test_it_ends_when_all_that_is_left_needs_a_failure() -> None:
    told = outcomes(WorkerTask(1, lab_tasks.refuse), WorkerTask(2, partial(lab_tasks.say, "x"), needs=1), jobs=1)
    assert [(key, ended.failure) for key, ended in told] == [(1, "the guest never spoke"), (2, "the guest never spoke")]


def test_our_own_faults_are_named_as_such() -> None:
    ((_, ended),) = outcomes(WorkerTask(1, lab_tasks.blunder))
    assert "this is a defect of rtproof" in ended.failure
    assert "ZeroDivisionError: by zero" in ended.failure


def test_a_killed_process_is_a_failure() -> None:
    ((_, ended),) = outcomes(WorkerTask(1, lab_tasks.die))
    assert "killed" in ended.failure


def test_an_exception_while_telling_interrupts_those_that_run_and_lets_them_clean_up(tmp_path: Path) -> None:
    began, cleaned = tmp_path / "began", tmp_path / "cleaned"

    def told(task: WorkerTask, ended: TaskEnd) -> None:
        raise KeyboardInterrupt

    tasks = [
        WorkerTask(1, partial(lab_tasks.linger, began, cleaned)),
        WorkerTask(2, partial(lab_tasks.meet, tmp_path / "x", began)),
    ]
    with pytest.raises(KeyboardInterrupt):
        run_tasks(tasks, 2, told)
    assert cleaned.exists()
    assert not Path("/proc", began.read_text()).exists()


def test_tasks_are_interrupted_when_the_program_is_killed(tmp_path: Path) -> None:
    began, cleaned = tmp_path / "began", tmp_path / "cleaned"
    code = (
        "import sys; from functools import partial; from pathlib import Path; import lab_tasks\n"
        "from rtproof.lab.cell_runner import WorkerTask, run_tasks\n"
        "if __name__ == '__main__':\n"
        f"    work = partial(lab_tasks.linger, Path({str(began)!r}), Path({str(cleaned)!r}))\n"
        "    run_tasks([WorkerTask(1, work)], 1, print)\n"
    )
    script = tmp_path / "main.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, str(script)], env=environment) as process:
        wait_for(began)
        process.kill()
    wait_for(cleaned)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + lab_tasks.DEADLINE_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.01)
