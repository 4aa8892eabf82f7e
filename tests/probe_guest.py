# SPDX-License-Identifier: Apache-2.0
"""Runs the agent's probes in a guest, several in one boot, and gives out what they left."""

import fcntl
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import lab_kernels
import lab_qemu
import numpy as np
import pytest
from agent_process import agent

from rtproof.judge.analyse import analyse
from rtproof.record.contents import Int64Array, Moment, Record
from rtproof.record.reading import open_record
from rtproof.summary.recorded_facts import probe_accounts
from rtproof.summary.summary_model import Severity
from rtproof.vm.guest import Job, run_job
from rtproof.vm.machine import Machine

RUN = """\
run() {
    name=$1; shift
    /agent run --warmup 100ms --samples 500 -o /out/$name "$@" 2> /out/$name.said || echo "exit $?" >> /out/$name.said
}
"""
"""For scripts: run NAME OPTION... leaves the record /out/NAME, and what the agent said."""


@dataclass(frozen=True)
class Guest:
    """What a guest left."""

    name: str
    folder: Path

    def record(self, name: str) -> Record:
        record = open_record(self.folder / name)
        assert record.damage == ()
        assert self.said(name) == ""
        return record

    def said(self, name: str) -> str:
        return self.text(f"{name}.said")

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


def run(name: str, script: str, temporary: pytest.TempPathFactory, cpus: int = 1, *files: tuple[str, Path]) -> Guest:
    """A script in a guest with a kernel of the catalogue, which has /agent and the module; skips without either.

    Once for all processes among which pytest spreads its tests.
    """
    if cpus > 1:
        lab_qemu.for_several_processors()
    files = (("/agent", Path(agent())), ("/rtproof.ko", lab_kernels.module(name)), *files)
    machine = Machine(lab_kernels.kernel(name), cpus=cpus)
    common = temporary.getbasetemp() if "PYTEST_XDIST_WORKER" not in os.environ else temporary.getbasetemp().parent
    place = common / f"guest-{name}-{zlib.crc32(script.encode()):08x}"
    place.mkdir(exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "done").exists():
            outcome = run_job(machine, Job(RUN + script, files), place / "out")
            assert outcome.exit_code == 0, outcome.said
            (place / "done").touch()
    return Guest(name, place / "out")


def values(record: Record) -> dict[str, Int64Array]:
    """All samples of each field of the only thread."""
    return {s.field: np.concatenate([block.values for block in record.blocks(s.id)]) for s in record.series}


def account(record: Record) -> dict[str, str]:
    """What the probe gpio says of itself."""
    return probe_accounts(record, "gpio")[0]


def facts(record: Record, key: str) -> set[str | None]:
    """What a fact of thread 0 was in the course of the run."""
    return {record.fact(key, moment, 0) for moment in (Moment.START, Moment.DURING, Moment.END)} - {None}


def invalid(record: Record) -> list[str]:
    return [doubt.what for doubt in analyse(record).doubts if doubt.severity is Severity.INVALID]
