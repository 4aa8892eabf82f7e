# SPDX-License-Identifier: Apache-2.0

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtproof.core.errors import TargetError
from rtproof.targets import local


@pytest.fixture
def target() -> Iterator[local.LocalTarget]:
    with local.open_target({}) as opened:
        yield opened


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_it_tells_what_machine_it_is(target: local.LocalTarget) -> None:
    assert target.machine() == os.uname().machine
    assert target.host_name() == os.uname().nodename


def test_lines_and_exit_code_come_back(target: local.LocalTarget) -> None:
    process = target.start(
        python("import sys; print('one', file=sys.stderr); print('two', file=sys.stderr); sys.exit(7)")
    )
    assert list(process.lines()) == ["one", "two"]
    assert process.wait() == 7


def test_bytes_that_are_no_text_are_shown_somehow(target: local.LocalTarget) -> None:
    process = target.start(python(r"import os; os.write(2, b'a\xff\n' + b'x' * 200000)"))
    lines = list(process.lines())
    assert lines[0] == "a\ufffd"
    assert sum(map(len, lines[1:])) == 200_000
    assert process.wait() == 0


def test_a_signal_is_told_from_an_exit_code(target: local.LocalTarget) -> None:
    process = target.start(python("import os; os.kill(os.getpid(), 9)"))
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize(("method", "number"), [("interrupt", signal.SIGINT), ("terminate", signal.SIGTERM)])
def test_signals_reach_the_program(target: local.LocalTarget, method: str, number: int) -> None:
    code = f"import os, signal, sys; signal.signal({int(number)}, lambda *_: sys.exit(5))"
    process = target.start(python(code + "; os.write(2, b'ready\\n'); signal.pause()"))
    lines = process.lines()
    assert next(lines) == "ready"
    getattr(process, method)()
    assert process.wait() == 5


def test_a_program_that_ended_takes_no_signal(target: local.LocalTarget) -> None:
    process = target.start(python("pass"))
    assert process.wait() == 0
    process.interrupt()
    process.kill()
    assert process.wait() == 0


def test_what_a_killed_program_started_is_ended_too(target: local.LocalTarget) -> None:
    """The child holds the pipe open, so the lines end only when it is gone."""
    code = "import os, signal\nif os.fork(): os.kill(os.getpid(), 9)\nos.write(2, b'child\\n')\nsignal.pause()"
    process = target.start(python(code))
    assert list(process.lines()) in ([], ["child"])
    assert process.wait() == -signal.SIGKILL


def test_the_lines_end_when_the_children_are_gone(target: local.LocalTarget) -> None:
    code = "import os, signal, time\nif os.fork() == 0:\n  os.write(2, b'child\\n')\n  signal.pause()\nos.read(0, 1)"
    process = target.start(python(code))
    lines = process.lines()
    assert next(lines) == "child"
    process.kill()
    assert list(lines) == []
    assert process.wait() == -signal.SIGKILL


def test_it_is_out_of_reach_of_the_terminal(target: local.LocalTarget) -> None:
    process = target.start(python("import os; os.write(2, b'%d' % os.getsid(0))"))
    assert int(next(process.lines())) != os.getsid(0)
    assert process.wait() == 0


def test_its_input_ends_when_the_host_has_gone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    child = f"import os; os.write(os.open({str(tmp_path / 'fifo')!r}, os.O_WRONLY), b'%d' % len(os.read(0, 1)))"
    host = (
        "import os, sys; from rtproof.targets import local\n"
        f"local.LocalTarget().start([sys.executable, '-c', {child!r}])\n"
        "os.kill(os.getpid(), 9)"
    )
    fifo = os.open(tmp_path / "fifo", os.O_RDWR)
    assert subprocess.run(python(host), check=False).returncode == -signal.SIGKILL
    assert select.select([fifo], [], [], 60)[0] == [fifo]
    assert os.read(fifo, 1) == b"0"
    os.close(fifo)


def test_a_program_that_cannot_start_is_one_sentence(target: local.LocalTarget, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be started: No such file"):
        target.start([str(tmp_path / "nothing")])


def test_nothing_is_copied_on_this_machine(target: local.LocalTarget, tmp_path: Path) -> None:
    program = tmp_path / "agent"
    assert target.push(program) == str(program)
    assert target.place(tmp_path / "run.rtrec") == str(tmp_path / "run.rtrec")
    target.pull(str(program), program)
    assert list(tmp_path.iterdir()) == []
