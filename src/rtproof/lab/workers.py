# SPDX-License-Identifier: Apache-2.0
"""Work in processes of its own, several at once, each task as soon as the one that it needs is done.

Threads would not do: a virtual machine is taken down by the KeyboardInterrupt of a main thread. So each task has a
process with a session of its own, which hears of Ctrl-C from us alone, once, or when we die.
"""

import ctypes
import os
import signal
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from rtproof import defects

PATIENCE_S = 20
"""How long a task may take to clean up before it is killed."""
PR_SET_PDEATHSIG = 1
"""prctl(2)."""


@dataclass(frozen=True)
class Task:
    """``work`` can be pickled, as can what it returns. ``needs``: key of a task that has to be done before."""

    key: Hashable
    work: Callable[[], Any]
    needs: Hashable | None = None


@dataclass(frozen=True)
class Ended:
    """What a task returned, or the sentence that says why it did not."""

    value: Any = None
    failure: str = ""


Told = Callable[[Task, Ended], None]


def run_all(tasks: Sequence[Task], jobs: int, told: Told) -> None:
    """Run every task, at most ``jobs`` at once, the first that can start first; tell of each as it ends.

    A task whose need failed fails with the same sentence. On any exception, also KeyboardInterrupt, those that run are
    interrupted and waited for.
    """
    crew = _Crew(list(tasks), jobs)
    try:
        while crew.waiting or crew.running:
            crew.give_up(told)
            crew.start()
            if crew.running:
                crew.collect(told)
    finally:
        crew.stop()


@dataclass
class _Crew:
    waiting: list[Task]
    jobs: int
    running: dict[Connection, tuple[Task, SpawnProcess]] = field(default_factory=dict)
    ended: dict[Hashable, Ended] = field(default_factory=dict)

    def give_up(self, told: Told) -> None:
        """End the tasks that wait for one that failed."""
        for task in list(self.waiting):
            need = self.ended.get(task.needs) if task.needs is not None else None
            if need and need.failure:
                self.waiting.remove(task)
                self._end(task, Ended(failure=need.failure), told)

    def start(self) -> None:
        """As many as there is room for."""
        ready = [task for task in self.waiting if task.needs is None or task.needs in self.ended]
        for task in ready[: self.jobs - len(self.running)]:
            self.waiting.remove(task)
            answers, process = _start(task)
            self.running[answers] = task, process

    def collect(self, told: Told) -> None:
        """Wait until at least one has ended."""
        for answers in connection.wait(list(self.running)):
            assert isinstance(answers, Connection)
            task, process = self.running.pop(answers)
            self._end(task, _answer(answers, process), told)

    def _end(self, task: Task, ended: Ended, told: Told) -> None:
        self.ended[task.key] = ended
        told(task, ended)

    def stop(self) -> None:
        """Interrupt what runs and wait until it has cleaned up."""
        processes = [process for _, process in self.running.values()]
        for process in processes:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGINT)
        for process in processes:
            process.join(PATIENCE_S)
            if process.is_alive():
                process.kill()
                process.join()


def _start(task: Task) -> tuple[Connection, SpawnProcess]:
    """Until it is ready for Ctrl-C, which the terminal sends to everybody, the process does not hear it."""
    context = get_context("spawn")
    answers, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, task.work))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return answers, process


def _answer(answers: Connection, process: SpawnProcess) -> Ended:
    try:
        ended = answers.recv()
    except EOFError:
        process.join()
        ended = Ended(failure=_death(process.exitcode or 0))
    process.join()
    answers.close()
    assert isinstance(ended, Ended)
    return ended


def _death(exit_code: int) -> str:
    if exit_code == -signal.SIGKILL:
        return "its process was killed, as the system does when memory runs out: try fewer at once with --jobs"
    return f"its process ended with exit code {exit_code} and no answer"


def _work(answers: Connection, work: Callable[[], Any]) -> None:
    """What the process does. Every error is a sentence."""
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        ended = Ended(work())
    except KeyboardInterrupt:
        return
    except Exception as error:
        ended = Ended(failure=defects.sentence(error))
    try:
        answers.send(ended)
    except Exception as error:
        answers.send(Ended(failure=defects.sentence(error)))
