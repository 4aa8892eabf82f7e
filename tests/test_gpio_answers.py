# SPDX-License-Identifier: Apache-2.0
"""Article 1's setup: two guests whose lines this host joins. One gives edges, the other answers them.

The host stands for the wires. It holds some edges back and drops one, so what was planted is known, and must be found
in the generator's times and in the picture of all answers. A busy host may make other answers late as well.
"""

import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import lab_kernels
import pytest
from guest_gpio import GpioLines, gpio_lines
from report_cases import heat_maps
from test_vm_edges import PATIENCE_S, aarch64_agent

from rtproof.core.errors import TargetError
from rtproof.experiment import stored_runs
from rtproof.record import run_folder
from rtproof.report.blocks import HeatMap
from rtproof.report.sections.answers import TITLE
from rtproof.vm.guest import Job, started_guest, unpack_results, wait_until_over
from rtproof.vm.machine import Machine
from rtproof.vm.qemu_process import Guest as RunningGuest

MS = 1_000_000
IN, OUT = 0, 1
EDGES, ANSWERS = 250, 300
"""Due times of the generator, some of which it misses while an answer is late; answers of the responder.

The last ones are to edges from this host.
"""
HELD, HELD_MS = range(40, 48), 700
DROPPED = 55
GENERATE = f"""\
exec /agent run --period 100ms --threads 1 --priority 90 --warmup 0s --samples {EDGES} --method generate \
    --probe gpio:chip=0,in={IN},out={OUT},pattern=yes -o /out/record
"""
RESPOND = f"""\
exec /agent run --period 100ms --threads 1 --priority 90 --warmup 0s --samples {ANSWERS} --method respond \
    --probe gpio:chip=0,in={IN},out={OUT} -o /out/record
"""


@dataclass
class Wires:
    """Both wires between the guests. held_ns: how long each edge that was held back really was."""

    generator: GpioLines
    responder: GpioLines
    edges: int = 0
    level: bool = False
    held_ns: list[int] = field(default_factory=list)

    def carry(self) -> None:
        """What changed on one side comes to the other one."""
        if (change := self.generator.change(0.002)) and change[0] == OUT:
            self.level = change[1]
            self._give_edge()
        if (change := self.responder.change(0.002)) and change[0] == OUT:
            self.generator.drive(IN, change[1])

    def _give_edge(self) -> None:
        self.edges += 1
        if self.edges in HELD:
            began_ns = time.monotonic_ns()
            time.sleep(HELD_MS / 1000)
            self.held_ns.append(time.monotonic_ns() - began_ns)
        if self.edges != DROPPED:
            self.responder.drive(IN, self.level)

    def give_edges(self, responder: RunningGuest) -> None:
        """Until the responder has enough."""
        with suppress(TargetError):
            while responder.alive():
                self.level = not self.level
                self.responder.answer(IN, self.level, OUT, 0.5)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Wires]:
    """The folder of a run on two boards, and what the wires did."""
    place = tmp_path_factory.mktemp("answers")
    machine = Machine(lab_kernels.kernel("debian-6.1-arm64"), in_virtual_time=False)
    folder = place / "run"
    folder.mkdir()
    with ExitStack() as stack:

        def start(name: str, script: str) -> tuple[RunningGuest, GpioLines]:
            job = Job(script, (("/agent", aarch64_agent()),))
            running = stack.enter_context(started_guest(machine, job, place / f"{name}.log", PATIENCE_S))
            return running, stack.enter_context(gpio_lines(running))

        (responder, theirs), (generator, ours) = start("responder", RESPOND), start("generator", GENERATE)
        wires = Wires(ours, theirs)
        with suppress(TargetError):  # the guest that ends first ends its connection
            while generator.alive() and responder.alive():
                wires.carry()
        wires.give_edges(responder)
        names = {run_folder.RECORD_NAME: responder, run_folder.GENERATOR_NAME: generator}
        for name, running in names.items():
            wait_until_over(running, PATIENCE_S)
            results = place / f"results of {name}"
            results.mkdir()
            unpack_results(running.mailbox.results.getvalue(), results)
            (results / "record").rename(folder / name)
    return folder, wires


def generator_picture(folder: Path) -> HeatMap:
    result = stored_runs.read_run(folder)
    pictures = [each for section in result.sections() for each in heat_maps(list(section.blocks))]
    return next(each for each in pictures if each.title == f"{TITLE}, by the generator's clock")


@pytest.mark.slow
@pytest.mark.serial
def test_the_generator_s_times_have_what_the_wires_held_back_and_dropped(run: tuple[Path, Wires]) -> None:
    folder, wires = run
    edges = stored_runs.read_run(folder).analysis.edges
    assert edges is not None
    assert len(wires.held_ns) == len(HELD)
    assert edges.never_answered_ns.size >= 1
    at_least, _ = edges.response.counts.exceedances(min(wires.held_ns))
    assert at_least >= len(HELD)


@pytest.mark.slow
@pytest.mark.serial
def test_the_picture_shows_every_answer_and_the_held_ones_where_they_belong(run: tuple[Path, Wires]) -> None:
    folder, wires = run
    edges = stored_runs.read_run(folder).analysis.edges
    assert edges is not None
    picture = generator_picture(folder)
    rows = {name: row for name, _, row in picture.named_rows}
    assert sum(rows["answers"]) == edges.answered
    assert max(rows["input new"]) == edges.given
    scale = 1 if picture.x_label.endswith("[ms]") else 1_000
    held = min(wires.held_ns) / MS * scale
    behind = sum(n for right, n in zip(picture.x_edges[1:], rows["answers"], strict=True) if right > held)
    assert behind >= len(HELD)
    assert rows["output old"][-1] == edges.never_answered_ns.size
