# SPDX-License-Identifier: Apache-2.0
"""Articles on real kernels in virtual time: who is late and who is not is as the article says.

In virtual time latencies are numbers of instructions, so that ratios between kernels can be asserted.
"""

import html
import json
from pathlib import Path
from typing import Any

import lab_kernels
import pytest
from probe_guest import values

from rtproof import profiles
from rtproof.cli.main import main
from rtproof.record import run_folder
from rtproof.record.contents import Moment

RT, PLAIN = "debian-6.1-rt", "debian-6.1 preempt=none"
TRANSFER_NS = 250_000
"""The bus's driver waits at least so long for each transfer (i2c-piix4.c)."""


def told(output: Path, name: str, *words: str) -> dict[str, Any]:
    """The result of a profile on both kernels."""
    for kernel in ("debian-6.1-rt", "debian-6.1"):
        lab_kernels.kernel(kernel)
        lab_kernels.module(kernel)
    code = main(["lab", "profile", name, *words, "--jobs", "2", "--output", str(output)])
    assert code in (0, 4), "a cell failed"
    found: dict[str, Any] = json.loads((output / "result.json").read_bytes())
    page = html.unescape((output / "report.html").read_text())
    assert "article" in page
    assert profiles.load(name).guest.says in page
    return found


def largest_ns(found: dict[str, Any], cell: str, system: str) -> int:
    (value,) = [
        result["analysis"]["pooled"]["observed"]["max_ns"]
        for each in found["cells"]
        for result in each["results"]
        if (each["key"], result["system"]) == (cell, system)
    ]
    return int(value)


def stage_ns(found: dict[str, Any], system: str) -> dict[str, int]:
    """The largest value of each stage of the loaded cell."""
    (stages,) = [
        result["analysis"]["stages"]
        for each in found["cells"]
        for result in each["results"]
        if (each["key"], result["system"]) == ("loaded", system)
    ]
    return {stage["field"]: stage["observed"]["max_ns"] for stage in stages}


@pytest.mark.slow
def test_akamina_communication_delays_the_plain_kernel_only(tmp_path: Path) -> None:
    found = told(tmp_path / "out", "akamina", "--duration", "2s")
    assert largest_ns(found, "loaded", PLAIN) > 2 * largest_ns(found, "loaded", RT)
    assert largest_ns(found, "unloaded", PLAIN) < 2 * largest_ns(found, "unloaded", RT)
    for system in (RT, PLAIN):
        stages = stage_ns(found, system)
        assert stages["irq"] < stages["user"]
    for place in (tmp_path / "out" / "cells").glob("*/"):
        record = run_folder.open_run(place).record
        assert record.fact("limits_ns", Moment.ASKED) == "500000"


@pytest.mark.slow
def test_simple_rt_app_reads_its_sensor_and_is_late_on_the_plain_kernel_only(tmp_path: Path) -> None:
    found = told(tmp_path / "out", "simple-rt-app", "--samples", "300", "--trace")
    rt, plain = stage_ns(found, RT), stage_ns(found, PLAIN)
    assert plain["top"] > 5 * rt["top"]
    changed = {each["option"]: each["now"] for each in found["profile"]["changes"]}
    assert changed == {"trace": "on", "load": "cpu:workers=1 mmap:rate=200"}
    for place in (tmp_path / "out" / "cells").glob("*/"):
        start, end = (values(run_folder.open_run(place).record)[field] for field in ("start", "end"))
        assert (end - start > TRANSFER_NS).all()
    for each in found["cells"][0]["results"]:
        names = ("ts_file.csv", "trace.txt", "trace.dat")
        assert all(path.endswith(name) for path, name in zip(each["files"], names, strict=True))
        assert all((tmp_path / "out" / path).stat().st_size > 1000 for path in each["files"])


@pytest.mark.slow
def test_bootlin_gpio_answers_late_on_the_plain_kernel_only_and_the_same_when_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = []
    for time in ("first", "again"):
        monkeypatch.setattr("rtproof.lab.guest_cell.cell_store_folder", lambda place=tmp_path / f"kept-{time}": place)
        found = told(tmp_path / time, "bootlin-gpio", "--duration", "500ms", "--load", "mmap")
        assert largest_ns(found, "loaded", PLAIN) > 5 * largest_ns(found, "loaded", RT)
        places = sorted((tmp_path / time / "cells").glob("*/run.rtrec"))
        records.append([place.read_bytes() for place in places])
    assert len(records[0]) == 2
    assert records[0] == records[1]


@pytest.mark.slow
def test_ten_ms_stress_takes_cycles_out_of_the_band_on_the_plain_kernel_only(tmp_path: Path) -> None:
    found = told(tmp_path / "out", "ten-ms", "--duration", "8s", "--set", "load=stress")
    out = {
        (each["key"], result["system"]): result["analysis"]["cycles"]["short_count"]
        + result["analysis"]["cycles"]["long_count"]
        for each in found["cells"]
        for result in each["results"]
    }
    assert all(count == 0 for (_, system), count in out.items() if system == RT)
    assert any(count > 0 for (_, system), count in out.items() if system == PLAIN)
