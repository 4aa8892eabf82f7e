# SPDX-License-Identifier: Apache-2.0
"""Records of the probe app made of plain numbers, with loops that are known; and the sieve in a program by itself."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agent_process import agent
from analysis_records import MS, SERIES, fact
from stage_records import staged

from rtproof.agents import build
from rtproof.agents.architectures import host_architecture
from rtproof.core.errors import UserError
from rtproof.record.contents import Record
from rtproof.summary import loops
from rtproof.summary.loops import Loops

US = 1_000
APP = replace(SERIES, probe="app", method="absolute", period_ns=5 * MS)
TABLE = ((40, 50, 1_050), (1_311, 1_320, 2_100), (38, 48, 900), (41, 50, 950), (300, 310, 16_200))
"""Top, start and end of five loops, in microseconds behind their targets. The last one works far beyond its period."""


def fields(rows: Sequence[tuple[int, int, int]]) -> dict[str, list[int]]:
    """The fields of a thread from top, start and end in microseconds."""
    columns = zip(*rows, strict=True)
    return {name: [US * value for value in column] for name, column in zip(loops.LOOP_FIELDS, columns, strict=True)}


def app_record(*threads: Sequence[tuple[int, int, int]], comment: str = "", **parts: Any) -> Record:
    options = f"work=sensor,comment={comment}" if comment else "work=sensor"
    made = staged(*map(fields, threads), series=APP, **parts)
    return replace(made, facts=(*made.facts, fact("probe_options", options)))


def whole(record: Record, thread: int = 0) -> Loops:
    """All loops of a thread in one piece."""
    pieces = [piece for piece in loops.application_loops(record) if piece.thread == thread]
    names = ("index", "target_ns", "top_ns", "start_ns", "end_ns", "followed", "loop_ns", "slack_ns")
    return Loops(thread, *(np.concatenate([getattr(piece, name) for piece in pieces]) for name in names))


def account(record: Record, thread: int = 0) -> dict[str, str]:
    """What the probe says of itself."""
    (content,) = (file.content.decode() for file in record.files if file.path == f"app/thread{thread}")
    return dict(line.split(" ", 1) for line in content.splitlines())


def sieve_alone(place: Path) -> Path:
    """The program that times the sieve by itself; skips the test if nothing here can build it."""
    agent()
    try:
        compiler = build.choose_compiler(host_architecture())
    except UserError as error:
        pytest.skip(str(error))
    sources = ("tests/sieve_alone.c", "probes/app/work.c", "system/clock.c", "system/sys.c")
    command = [*compiler.command, "@cflags", *sources, "@ldflags", "-o", str(place)]
    subprocess.run(command, cwd=build.source_dir(), check=True)
    return place
