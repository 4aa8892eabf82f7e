# SPDX-License-Identifier: Apache-2.0
"""``--set`` of the agent: where it can change nothing it says so in a sentence, and all is as before."""

import subprocess
from pathlib import Path

import pytest
from agent_process import agent, eventually, needs_root, policy, run

from rtproof.cli.main import main
from rtproof.record.contents import Moment
from rtproof.record.reading import open_record

INTERVAL = Path("/proc/sys/vm/dirty_expire_centisecs")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan")
AS_BEFORE = "all settings are as before"


def another(path: Path) -> str:
    """A value that the file does not have."""
    return f"{path}={int(path.read_text()) + 6}"


def refused(prefix: list[str], path: Path, reason: str) -> None:
    """By a trial, and by a run: what a command before the agent did to its surroundings leaves nothing to change."""
    before = path.read_text()
    trial = run("try", "--set", another(path), prefix=prefix)
    assert trial.returncode == 2
    if "unshare" in prefix and "failed" in trial.stderr:
        pytest.skip("no mount namespace can be made here")
    assert (trial.stderr.count("\n"), trial.stderr.split("\t")[0]) == (1, "refused"), trial.stderr
    assert reason in trial.stderr
    assert AS_BEFORE in trial.stderr
    words = ("run", "--duration", "10ms", "--policy", "other", "-o", "-", "--set", another(path))
    real = run(*words, prefix=prefix)
    assert (real.returncode, real.stderr.count("\n")) == (2, 1), real.stderr
    assert reason in real.stderr
    assert path.read_text() == before


def in_mounts(script: str) -> list[str]:
    """The words that run a command with mounts of its own."""
    return ["unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh"]


@needs_root
def test_without_root_nothing_is_set() -> None:
    words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    refused(words, INTERVAL, "Permission denied")


@needs_root
def test_a_sysfs_that_is_read_only_stays_as_it_is() -> None:
    if not HUGE_PAGES.exists():
        pytest.skip("this kernel has no transparent huge pages")
    refused(in_mounts("mount -o remount,bind,ro /sys"), HUGE_PAGES, "Read-only file system")


@needs_root
def test_without_room_for_the_journal_nothing_is_set() -> None:
    mount = "mount -t tmpfs -o size=4k none /var/lib && mkdir /var/lib/rtproof"
    refused(
        in_mounts(f"{mount} && head -c 4096 /dev/zero > /var/lib/rtproof/fill"),
        INTERVAL,
        "its journal can't be written: No space",
    )


@needs_root
def test_a_setting_of_another_run_is_left_to_it(tmp_path: Path) -> None:
    before = INTERVAL.read_text()
    chosen = another(INTERVAL)
    first = subprocess.Popen(
        [agent(), "run", "--duration", "1h", *policy(), "-o", tmp_path / "first", "--set", chosen],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert first.stderr
    try:
        while INTERVAL.read_text() == before:
            assert first.poll() is None, first.stderr.read()
        refused([], INTERVAL, "another run has set it, and restores it when it ends")
    finally:
        first.terminate()  # before it listens to signals, this kills it, and its keeper restores the setting
        first.communicate()
    assert eventually(lambda: INTERVAL.read_text() == before)


@needs_root
def test_the_record_names_each_setting_and_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, file = INTERVAL.read_text().strip(), tmp_path / "run.rtrec"
    words = ("--set", another(INTERVAL), "--set", f"{HUGE_PAGES.parent.parent}/enable[d]=@enabled")
    assert run("run", "--duration", "100ms", *policy(), "-o", file, *words).returncode == 0
    facts = [open_record(file).fact(f"setting.{n}", Moment.START) for n in range(2)]
    value = another(INTERVAL).partition("=")[2]
    assert facts[0] == f"{INTERVAL}\t{value}\t{before}\t{value}\t1 set, 0 had it, 0 kept by the kernel, 0 refused"
    assert facts[1]
    assert "0 set, 1 had it" in facts[1]
    assert INTERVAL.read_text().strip() == before
    assert main(["show", str(file)]) in (0, 3)
    assert "Traceback" not in "".join(capsys.readouterr())
