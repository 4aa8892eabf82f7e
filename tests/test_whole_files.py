# SPDX-License-Identifier: Apache-2.0
"""A result is whole or absent: who writes it may be killed at any moment, and nobody writes it under its own name."""

import ast
import errno
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from analysis_records import block, record
from explain_cases import traced_run
from test_explain_run import several

from rtproof.core import files
from rtproof.exporters import csv, cyclictest, perfetto
from rtproof.judge.analyse import analyse

SOURCES = Path(files.__file__).parent.parent
PLAIN = analyse(record([block(range(20_000, 24_000))]))
TRACED = analyse(traced_run(*several()))

Writer = Callable[[Path], Any]
WRITERS: dict[str, Writer] = {
    "csv": lambda path: csv.export(PLAIN, path, {}),
    "cyclictest": lambda path: cyclictest.export(PLAIN, path, {}),
    "perfetto": lambda path: perfetto.export(TRACED, path, {"limit": "100us"}),
    "new": lambda path: files.write_whole(path, b"page" * 5_000, new=True),
    "over the old": lambda path: files.write_whole(path, b"page" * 5_000),
}
MOST_MOMENTS = 60


def killed_at(moment: int, write: Writer, path: Path) -> int:
    """How many functions of C a child had called when it wrote, or was killed before the one of this number."""
    receiving, sending = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the child only writes
        child = os.fork()
    if not child:
        calls = 0

        def count(frame: FrameType, event: str, what: object) -> None:
            nonlocal calls
            if event == "c_call":
                calls += 1
                if calls == moment:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        write(path)
        sys.setprofile(None)
        os.write(sending, str(calls).encode())
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as told:
        calls = int(told.read() or 0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == (0 if calls else -signal.SIGKILL)
    return calls


@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_that_is_killed_leaves_the_old_file_or_the_new(tmp_path: Path, name: str) -> None:
    old = b"old" if name == "over the old" else None
    whole = tmp_path / "whole"
    calls = killed_at(0, WRITERS[name], whole)
    contents = {old, whole.read_bytes()}
    found = set()
    for moment in sorted({*range(1, calls, max(1, calls // MOST_MOMENTS)), *range(max(1, calls - 15), calls)}):
        path = tmp_path / str(moment)
        if old:
            path.write_bytes(old)
        killed_at(moment, WRITERS[name], path)
        found.add(path.read_bytes() if path.exists() else None)
    assert found == contents


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_no_part_and_names_the_file(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        WRITERS[name](tmp_path / "a")
    assert caught.value.filename == str(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told_of_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        files.write_whole(tmp_path / "none" / "a", b"")
    assert (caught.value.filename, caught.value.filename2) == (str(tmp_path / "none" / "a"), None)


ELSEWHERE = {
    "agents/build.py": "the cache of agents: a folder that gets its name when it is whole",
    "boards/background_run.py": "the record, which comes in pieces that can be read each",
    "boards/console.py": "a serial line",
    "cli/main.py": "no file",
    "cli/pytest_runs.py": "a lock",
    "doctor/examination.py": "no file",
    "doctor/machine_checks.py": "trials",
    "lab/debian_packages.py": "the settings of apt",
    "lab/kernel_catalogue.py": "the cache of kernels: a folder that gets its name when it is whole",
    "record/unfinished_run.py": "a key, which gets its name by a link when it is whole: the first one stays",
    "record/writing.py": "the record, whose pieces can be read each",
    "run/session.py": "the log, and the output of another tool as it comes",
    "targets/labgrid.py": "a script for ssh",
    "vm/cache_folders.py": "locks, and a folder that gets its name when it is whole",
    "vm/guest.py": "the console of a guest, and what a guest gets",
    "vm/mailbox.py": "memory that a guest shares",
    "vm/qemu_process.py": "what a guest boots from, and its logs",
}
"""Who writes anything without ``whole_file``, and what."""
WRITING = {"write_text", "write_bytes", "touch", "copyfile", "copy2"}


def writes(source: str) -> Iterator[str]:
    """The calls that write a file, unless ``whole_file`` gave its name: ``part``."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).startswith("part."):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        words = [ast.unparse(each) for each in (*node.args, *(each.value for each in node.keywords))]
        opened = name in ("open", "fdopen") and any(re.search(r"^'[rb]*[wxa+]|O_WRONLY|O_RDWR", word) for word in words)
        if opened or name in WRITING:
            yield ast.unparse(node)


def test_no_result_is_written_under_its_own_name() -> None:
    found = {str(path.relative_to(SOURCES)): [*writes(path.read_text())] for path in SOURCES.rglob("*.py")}
    assert {name: calls for name, calls in found.items() if calls and name not in ELSEWHERE} == {}
    assert [name for name in ELSEWHERE if not found[name]] == []


@pytest.mark.parametrize("call", ["path.write_text(a)", "path.open('x')", "open(a, 'r+b')", "os.open(a, os.O_WRONLY)"])
def test_that_it_is_seen(call: str) -> None:
    assert list(writes(call)) == [call]
    assert list(writes("path.open('rb')")) == list(writes("part.write_bytes(a)")) == []
