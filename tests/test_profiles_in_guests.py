# SPDX-License-Identifier: Apache-2.0
"""Articles on real kernels in virtual time: who is late and who is not is as the article says.

In virtual time latencies are numbers of instructions, so that ratios between kernels can be asserted.
"""

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import lab_kernels

from rtproof.cli.main import main

RT, PLAIN = "debian-6.1-rt", "debian-6.1 preempt=none"


@functools.cache
def told(name: str, *words: str) -> dict[str, Any]:
    """The result of a profile on both kernels."""
    for kernel in ("debian-6.1-rt", "debian-6.1"):
        lab_kernels.kernel(kernel)
        lab_kernels.module(kernel)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out"
        code = main(["lab", "profile", name, *words, "--jobs", "2", "--output", str(output)])
        assert code in (0, 4), "a cell failed"
        found: dict[str, Any] = json.loads((output / "result.json").read_bytes())
        page = (output / "report.html").read_text()
    assert "article" in page
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


def test_akamina_communication_delays_the_plain_kernel_only() -> None:
    found = told("akamina", "--duration", "2s")
    assert largest_ns(found, "loaded", PLAIN) > 2 * largest_ns(found, "loaded", RT)
    assert largest_ns(found, "unloaded", PLAIN) < 2 * largest_ns(found, "unloaded", RT)
    for system in (RT, PLAIN):
        stages = stage_ns(found, system)
        assert stages["irq"] < stages["user"]


def test_simple_rt_app_has_its_top_of_loop_late_on_the_plain_kernel_only() -> None:
    found = told("simple-rt-app", "--samples", "300")
    rt, plain = stage_ns(found, RT), stage_ns(found, PLAIN)
    assert plain["top"] > 5 * rt["top"]
    (changed,) = [each for each in found["profile"]["changes"] if each["option"] == "load"]
    assert "mmap" in changed["now"]


def test_ten_ms_stress_takes_cycles_out_of_the_band_on_the_plain_kernel_only() -> None:
    found = told("ten-ms", "--duration", "8s", "--set", "load=stress")
    out = {
        (each["key"], result["system"]): result["analysis"]["cycles"]["short_count"]
        + result["analysis"]["cycles"]["long_count"]
        for each in found["cells"]
        for result in each["results"]
    }
    assert all(count == 0 for (_, system), count in out.items() if system == RT)
    assert any(count > 0 for (_, system), count in out.items() if system == PLAIN)
