# SPDX-License-Identifier: Apache-2.0
"""One real thing of each kind, for the short set: a run of two seconds under loads, a guest that boots, a page."""

import json
import shutil
from pathlib import Path

import chromium
import pytest
from agent_process import eventually, measured, policy, running, whole
from test_loads_of_agent import idle

from rtproof.cli.main import main
from rtproof.lab import kernel_catalogue
from rtproof.record.reading import open_record

KERNEL = "debian-6.1"
LOADS = {
    "processor": "cpu:workers=1",
    "scheduler": "sched:groups=1",
    "memory": "mmap",
    "files": "files",
    "network": "net",
    "timers": "timers",
}
"""A load of each group, small enough for a machine that does other work."""


def test_a_run_of_two_seconds_counts_every_due_time_and_what_the_loads_did(tmp_path: Path) -> None:
    words = [*policy(), "--threads=1", "--period=1ms", *(f"--load={load}" for load in LOADS.values()), "--duration"]
    record = measured(tmp_path / "record", *words, "2s")
    assert record.end is not None
    assert [total.obtained + total.missed + total.lost for total in record.end.totals] == [2_000]
    with running("-o", tmp_path / "again", "--checkpoint", "100ms", *words, "600s") as one:  # until each has done some
        one.await_ns(0)
        assert eventually(lambda: idle(open_record(tmp_path / "again")) == [])


def test_a_run_is_measured_judged_and_drawn_in_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(["run", "--duration", "1s", "--limit", "1us", "--policy", "other", "--output", "run", "--json"])
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict["state"] != "NOT ASKED"
    assert code in (1, 3, 4)
    if chromium.program() is None:
        pytest.skip("there is no chromium to open the page of the run")
    with chromium.browser(tmp_path) as browser:
        page = chromium.load(browser, tmp_path / "run.html", 1280, "light")
        assert page.messages() == []
        assert page.evaluate("document.querySelectorAll('canvas').length") > 0


def test_a_guest_boots_and_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("qemu-system-x86_64 is not installed")
    if not kernel_catalogue.opened_kernel(kernel_catalogue.catalogue_entry(KERNEL)):
        pytest.skip(f"{KERNEL} is not in the cache: rtproof lab kernels fetch {KERNEL}")
    monkeypatch.chdir(tmp_path)
    target = ["--target", "qemu", "--target-option", f"kernel={KERNEL}"]
    assert main(["run", *target, "--samples", "200", "--output", "run", "--no-report"]) == 0
    end = whole(tmp_path / "run" / "run.rtrec").end
    assert end is not None
    assert [total.obtained for total in end.totals] == [200]
