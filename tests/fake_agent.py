# SPDX-License-Identifier: Apache-2.0
"""An agent that behaves as it is told, well or badly, for the tests of ``rtproof run``.

``install`` makes a program of it. It is started like the real one and writes a real record, without measuring anything.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from analysis_records import BEGIN, MS, SERIES, fact

import rtproof
from rtproof.core import units
from rtproof.record.contents import End, EndReason
from rtproof.record.writing import RecordWriter, SeriesWriter

PROGRAM = """#!{python}
import sys
sys.path[:0] = {paths!r}
import fake_agent
sys.exit(fake_agent.{behaviour}(fake_agent.Job(sys.argv)))
"""
ACTIVATIONS = 1000


def install(folder: Path, behaviour: str) -> Path:
    """A program in the folder that calls the function of this module named ``behaviour``."""
    program = folder / f"agent-{behaviour}"
    paths = [str(Path(__file__).parent), str(Path(rtproof.__file__).parent.parent)]
    program.write_text(PROGRAM.format(python=sys.executable, paths=paths, behaviour=behaviour))
    program.chmod(0o755)
    return program


@dataclass(frozen=True)
class Job:
    """The command line that the agent got."""

    arguments: list[str]

    @property
    def output(self) -> str:
        return self.arguments[self.arguments.index("-o") + 1]

    def given(self, option: str) -> list[str]:
        """The values of an option, in order."""
        return [value for name, value in pairwise(self.arguments) if name == option]

    @property
    def waits(self) -> Path:
        """A file that says that an agent from the same folder can be interrupted."""
        return Path(self.arguments[0]).with_name("waits")

    def write(self, reason: EndReason | None = EndReason.AS_ASKED, latency_ns: int = 10_000) -> None:
        """A record of a second; without END if ``reason`` is None."""
        with RecordWriter(self.output) as writer:
            writer.begin(BEGIN)
            for key, value in (
                ("args", " ".join(self.arguments[1:])),
                ("duration_ns", str(1000 * MS)),
                ("period_ns", str(MS)),
                ("limits_ns", ",".join(str(units.parse_length(each)) for each in self.given("--limit"))),
                *(("claims", each) for each in self.given("--claims")),
            ):
                writer.fact(fact(key, value))
            writer.series(SERIES)
            feed = SeriesWriter(writer, SERIES)
            feed.add(np.full(ACTIVATIONS, latency_ns))
            totals = feed.finish()
            if reason is not None:
                writer.end(End(1000 * MS, reason, "", (totals,)))


def say(text: str) -> None:
    os.write(2, text.encode() + b"\n")


def progress(time_ns: int = 500 * MS, due_ns: int | None = None) -> None:
    """As an agent does; due_ns: left out as the first ones did."""
    say(
        f"progress time_ns={time_ns} thread=0 cpu=2 obtained=500 missed=0 lost=0 "
        "last_ns=10000 min_ns=10000 mean_ns=10000 max_ns=10000" + ("" if due_ns is None else f" due_ns={due_ns}")
    )


def as_told(job: Job) -> int:
    """Behaves as the first argument says that is the name of a behaviour."""
    return int(next(globals()[each] for each in job.arguments[1:] if each in globals())(job))


def good(job: Job) -> int:
    progress()
    say("rtproof-agent: measured as asked")
    job.write()
    return 0


def late(job: Job) -> int:
    job.write(latency_ns=700_000)
    return 0


def refuses(_job: Job) -> int:
    say("rtproof-agent: there is no CPU 99 on this machine")
    return 2


def does_its_load(job: Job) -> int:
    """Behave as the function does whose name came as a load; well without a load."""
    words = job.arguments
    behaviour: Callable[[Job], int] = globals()[words[words.index("--load") + 1] if "--load" in words else "good"]
    return behaviour(job)


def refuses_in_silence(_job: Job) -> int:
    return 1


def dies(job: Job) -> int:
    job.write(reason=None)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def dies_early(_job: Job) -> int:
    os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def runs_out_of_space(job: Job) -> int:
    job.write(EndReason.NO_SPACE)
    say("rtproof-agent: no space left for the record")
    return 2


def writes_nonsense(job: Job) -> int:
    Path(job.output).write_bytes(b"this is no record at all" * 10)
    return 0


def talks_nonsense(job: Job) -> int:
    os.write(2, b"\x1b[2J\x00\xff\xfe progress time_ns=\n" + b"x" * 100_000 + b"\n")
    return good(job)


def talks_too_much(job: Job) -> int:
    for _ in range(40):
        os.write(2, b"y" * 60_000 + b"\n")
    return good(job)


class Signals:
    """SIGINT and SIGTERM as bytes of a pipe, so that none is missed between looking and waiting."""

    def __init__(self) -> None:
        self._pipe, write_end = os.pipe()
        os.set_blocking(write_end, False)
        signal.set_wakeup_fd(write_end)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)

    def wait_for(self, *numbers: int) -> None:
        while os.read(self._pipe, 1)[0] not in numbers:
            pass


def until_interrupted(job: Job) -> int:
    """Finish at the first signal that asks for it."""
    signals = Signals()
    job.waits.touch()
    _ready()
    signals.wait_for(signal.SIGINT, signal.SIGTERM)
    job.write(EndReason.INTERRUPTED)
    return 0


def dies_beside_another(job: Job) -> int:
    """When another agent waits to be interrupted."""
    job.write(reason=None)
    _ready()
    while not job.waits.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def until_enough(job: Job) -> int:
    """Tell of a second above a limit and how far it has come, and finish when that is enough for who watches."""
    signals = Signals()
    say("over thread=1 limit_ns=500000 second=3 worst_ns=600000")
    progress(due_ns=400)
    progress(due_ns=800)
    signals.wait_for(signal.SIGINT)
    job.write(EndReason.INTERRUPTED)
    return 0


def until_terminated(job: Job) -> int:
    """Ignore SIGINT and finish at SIGTERM."""
    signals = Signals()
    _ready()
    signals.wait_for(signal.SIGTERM)
    job.write(EndReason.INTERRUPTED)
    return 0


def never_ends(job: Job) -> int:
    """Ignore what can be ignored."""
    job.write(reason=None)
    signals = Signals()
    _ready()
    signals.wait_for(signal.SIGUSR1)
    return 0


def never_starts_but_talks(_job: Job) -> int:
    _ready()
    return 1


def _ready() -> None:
    """A sentence is shown when something follows it."""
    say("rtproof-agent: ready")
    progress()


def tells_its_arguments(job: Job) -> int:
    say("rtproof-agent: " + " ".join(job.arguments[1:]))
    job.write()
    return 0
