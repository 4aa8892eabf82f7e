# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import lab_tasks
import pytest

from rtproof.lab.cell_runner import TaskEnd, WorkerTask, run_tasks


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
