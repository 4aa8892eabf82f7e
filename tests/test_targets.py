# SPDX-License-Identifier: Apache-2.0

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lab_kernels
import pytest
import vm_cases

from rtproof.core.errors import UserError
from rtproof.record import run_folder
from rtproof.targets import local, qemu


def test_options_describe_the_machine(tmp_path: Path) -> None:
    kernel = vm_cases.kernel(tmp_path)
    extra = tmp_path / "extra"
    options = {
        "kernel": str(kernel.image),
        "boot": "preempt=none quiet",
        "mode": "wall-clock",
        "cpus": "2",
        "memory": "1024",
        "insert": "dummy,/some/own.ko",
        "files": f"/etc/extra={extra}, /b={extra}",
        "serial": str(tmp_path / "a,b"),
    }
    with qemu.open_target(options) as target:
        machine = target._machine
        assert (target.machine(), target.host_name()) == ("x86_64", "rtproof-guest")
    assert (machine.kernel, machine.boot, machine.in_virtual_time) == (kernel, ("preempt=none", "quiet"), False)
    assert (machine.cpus, machine.memory_mib) == (2, 1024)
    assert machine.modules == ("dummy", Path("/some/own.ko"))
    assert machine.files == (("/etc/extra", extra), ("/b", extra))
    assert machine.serial == tmp_path / "a,b"


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"kernel": ""}, "the target qemu needs a kernel"),
        ({"kernel": "/absent"}, "the kernel /absent cannot be read"),
        ({"mode": "fast"}, "mode 'fast' is neither virtual-time nor wall-clock"),
        ({"cpus": "0"}, "cpus=0 is not a whole number of at least 1"),
        ({"cpus": "9"}, "cpus=9: in virtual time at most 8 processors share the instructions"),
        ({"cpus": "2", "pace": "5000"}, "a pace of 5000 us is not one of 1 to 1000 us"),
        ({"cpus": "2", "soakers": "maybe"}, "soakers=maybe is neither yes nor no"),
        ({"cpus": "2", "qemu": "nonsense"}, "there is no QEMU at .*nonsense"),
        ({"pace": "4"}, "pace= is for processors that take turns: it needs cpus=2 or more in virtual time"),
        ({"cpus": "2", "mode": "wall-clock", "soakers": "no"}, "soakers= is for processors that take turns"),
        ({"serial": "/s"}, "serial= needs mode=wall-clock"),
        ({"files": "relative=/x"}, "'relative=/x' is not PLACE=FILE"),
    ],
)
def test_an_option_that_makes_no_sense_is_a_sentence(option: dict[str, str], sentence: str, tmp_path: Path) -> None:
    options = {"kernel": str(vm_cases.kernel(tmp_path).image), **option}
    with pytest.raises(UserError, match=sentence), qemu.open_target(options):
        pass


@pytest.fixture
def target() -> Iterator[qemu.QemuTarget]:
    kernel = lab_kernels.kernel("debian-6.1")
    with qemu.open_target({"kernel": str(kernel.image), "setup": "echo set up >/ready; false"}) as opened:
        yield opened


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """It writes into its first argument, speaks, and waits for a signal."""
    path = tmp_path / "program"
    path.write_text(
        "#!/bin/sh\n"
        "trap 'echo asked to finish >&2; exit 4' INT\n"
        "trap 'echo asked once more >&2; exit 5' TERM\n"
        'echo content >"$1"; echo begins >&2\n'
        "while :; do sleep 1; done\n"
    )
    path.chmod(0o755)
    return path


def test_lines_files_and_the_code_come_back(target: qemu.QemuTarget, tmp_path: Path) -> None:
    speaker = tmp_path / "speaker"
    speaker.write_text('#!/bin/sh\ncat /ready >"$1"; echo one >&2; printf "two\\n\\nend" >&2; exit 3\n')
    speaker.chmod(0o755)
    file = tmp_path / "run.rtrec"
    process = target.start((target.push(speaker), target.place(file)))
    assert list(process.lines()) == ["one", "two", "", "end"]
    assert process.wait() == 3
    target.pull(target.place(file), file)
    assert file.read_text() == "set up\n"
    assert (tmp_path / "console.log").exists()


@pytest.mark.parametrize(("act", "end"), [("interrupt", ("asked to finish", 4)), ("terminate", ("asked once more", 5))])
def test_signals_reach_the_program(
    act: str, end: tuple[str, int], target: qemu.QemuTarget, program: Path, tmp_path: Path
) -> None:
    process = target.start((target.push(program), target.place(tmp_path / "x")))
    lines = process.lines()
    assert next(lines) == "begins"
    getattr(process, act)()
    assert (*lines, process.wait()) == end
    getattr(process, act)()


def test_a_kill_ends_the_guest_and_nothing_comes_back(target: qemu.QemuTarget, program: Path, tmp_path: Path) -> None:
    file = tmp_path / "x"
    process = target.start((target.push(program), target.place(file)))
    lines = process.lines()
    assert next(lines) == "begins"
    process.kill()
    assert list(lines) == []
    assert process.wait() == -9
    target.pull(target.place(file), file)
    assert not file.exists()
    assert not (tmp_path / "console.log").exists()


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
def test_the_agent_measures_in_it_unchanged(tmp_path: Path) -> None:
    kernel = lab_kernels.kernel("debian-6.1")
    command = [sys.executable, "-m", "rtproof", "run", "--target", "qemu", "--target-option", f"kernel={kernel.image}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    records = []
    for name in ("one", "other"):
        words = ["--duration", "1s", "--load", "cpu", "--no-report", "--output", str(tmp_path / name)]
        done = subprocess.run([*command, *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        records.append((tmp_path / name / run_folder.RECORD_NAME).read_bytes())
    assert records[0] == records[1]


@pytest.fixture
def target_local() -> Iterator[local.LocalTarget]:
    with local.open_target({}) as opened:
        yield opened


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_bytes_that_are_no_text_are_shown_somehow(target_local: local.LocalTarget) -> None:
    process = target_local.start(python(r"import os; os.write(2, b'a\xff\n' + b'x' * 200000)"))
    lines = list(process.lines())
    assert lines[0] == "a\ufffd"
    assert sum(map(len, lines[1:])) == 200_000
    assert process.wait() == 0


def test_what_a_killed_program_started_is_ended_too(target_local: local.LocalTarget) -> None:
    """The child holds the pipe open, so the lines end only when it is gone."""
    code = "import os, signal\nif os.fork(): os.kill(os.getpid(), 9)\nos.write(2, b'child\\n')\nsignal.pause()"
    process = target_local.start(python(code))
    assert list(process.lines()) in ([], ["child"])
    assert process.wait() == -signal.SIGKILL


def test_the_lines_end_when_the_children_are_gone(target_local: local.LocalTarget) -> None:
    code = "import os, signal, time\nif os.fork() == 0:\n  os.write(2, b'child\\n')\n  signal.pause()\nos.read(0, 1)"
    process = target_local.start(python(code))
    lines = process.lines()
    assert next(lines) == "child"
    process.kill()
    assert list(lines) == []
    assert process.wait() == -signal.SIGKILL


def test_it_is_out_of_reach_of_the_terminal(target_local: local.LocalTarget) -> None:
    process = target_local.start(python("import os; os.write(2, b'%d' % os.getsid(0))"))
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
