# SPDX-License-Identifier: Apache-2.0
"""The kernel module in guests with PREEMPT_RT and without: one boot of each, in virtual time."""

import shutil
import subprocess
from pathlib import Path

import lab_kernels
import pytest

from rtproof.vm.guest import Job, run_job
from rtproof.vm.kernel_files import Kernel
from rtproof.vm.machine import Machine

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parent.parent / "kmod" / "tests"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-static")

# Every due time of the timer below has a section without interrupts: both are on the same grid of 10 ms.
OFF_US = (100, 300, 1000)
SCRIPT = f"""\
insmod /rtproof.ko gpio=1 || exit
/check
echo "checks exit $?"
for mode in timer task user loop; do echo "idle: $(/check figures $mode 1000 500)"; done
(while :; do dd if=/dev/zero of=/load bs=1M count=16 2>/dev/null; rm /load; done) & load=$!
for mode in task user; do echo "load: $(/check figures $mode 1000 500)"; done
kill $load
wait $load
echo "off 0: $(/check figures timer 10000 50)"
for us in {" ".join(map(str, OFF_US))}; do
    insmod /rtproof_irqoff.ko off_us=$us
    echo "off $us: $(/check figures timer 10000 50)"
    rmmod rtproof_irqoff
done
rmmod rtproof && echo unloaded
dmesg > /out/dmesg
"""


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program, compiled for the guest."""
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    program = tmp_path_factory.mktemp("kmod") / "check"
    sources = [*sorted(SOURCES.glob("check*.c")), SOURCES / "figures.c"]
    subprocess.run(["gcc", *FLAGS, "-o", program, *sources], check=True)
    return program


@pytest.mark.parametrize("name", ["debian-6.1-rt", "debian-6.1"])
def test_the_module_measures_and_refuses_what_it_should(name: str, check: Path, tmp_path: Path) -> None:
    lines = boot(lab_kernels.kernel(name), name, check, tmp_path)
    assert_all_checks_pass(lines)
    assert_stages_are_in_order(lines)
    for us in OFF_US:
        assert_interrupts_off_show(lines, us)
    assert "unloaded" in lines
    log = (tmp_path / "dmesg").read_text()
    assert [line for line in log.splitlines() if "BUG:" in line or "WARNING:" in line or "while atomic" in line] == []


def boot(kernel: Kernel, name: str, check: Path, out: Path) -> list[str]:
    modules = [lab_kernels.module(name, which) for which in ("rtproof", "rtproof_irqoff")]
    files = (("/check", check), *((f"/{path.name}", path) for path in modules))
    return run_job(Machine(kernel), Job(SCRIPT, files), out).said.splitlines()


def assert_all_checks_pass(lines: list[str]) -> None:
    assert [line for line in lines if line.startswith(("FAIL", "  "))] == []
    assert "checks exit 0" in lines
    # A guest with one processor has none to switch off.
    assert [line for line in lines if line.startswith("SKIP")] == ["SKIP cpu-gone: one CPU"]


def assert_stages_are_in_order(lines: list[str]) -> None:
    """On the same load: interrupt, kernel task, user task; and in every event t1 is not after t2."""
    for label in ("idle", "load"):
        task, user = figures(lines, f"{label}: task"), figures(lines, f"{label}: user")
        assert task["irq"] < task["task"] < user["task"]
        assert user["irq"] < user["task"]
        assert task["reversed"] == user["reversed"] == task["lost"] == 0


def assert_interrupts_off_show(lines: list[str], us: int) -> None:
    """The section begins just before the due time, so all of it is added to the latency."""
    moved_ns = figures(lines, f"off {us}: timer")["irq"] - figures(lines, "off 0: timer")["irq"]
    assert moved_ns == pytest.approx(us * 1000, rel=0.02)


def figures(lines: list[str], label: str) -> dict[str, int]:
    """Mean of the stages in ns, and the counts, of one line of the test program."""
    (line,) = (line for line in lines if line.startswith(f"{label} "))
    words = line.removeprefix(label).split()
    found = {}
    while words:
        name = words.pop(0)
        values = [int(words.pop(0)) for _ in range(3 if name in ("irq", "task") else 1)]
        found[name] = values[1 if len(values) > 1 else 0]
    return found
