# SPDX-License-Identifier: Apache-2.0
"""Tunings of guests that have something wrong, in virtual time: the knob against it is found, and no other one."""

from pathlib import Path
from typing import Any

import lab_kernels
import pytest

from rtproof.cli.main import main
from rtproof.experiment import tuning_runs
from rtproof.tune import tuning
from rtproof.tune.tuning import Tuning

KERNEL = "debian-6.1"
RUN_NS = 1_000_000_000
NOTHING = "swappiness"
"""A knob that does nothing in a guest that has no swap."""


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Tuning]:
    """The tunings that end, as they are. Each has as few blocks as may be, however fast this machine is."""
    ended: list[Tuning] = []
    original = tuning.tune

    def tune(*given: Any) -> Tuning:
        ended.append(original(*given))
        return ended[-1]

    def planned(target: tuning_runs.TunedTarget, *_: object) -> tuple[tuning.Plan, int]:
        names = [each.knob.name for each in target.knobs if not each.missing]
        plan = tuning.plan(names, tuning.PILOT_RUNS + tuning.LEAST_BLOCKS * 2 ** len(names))
        assert plan
        return plan, RUN_NS

    monkeypatch.setattr(tuning, "tune", tune)
    monkeypatch.setattr(tuning_runs, "planned", planned)
    return ended


def test_a_deep_idle_state_is_found_and_a_knob_without_effect_is_not(found: list[Tuning], tmp_path: Path) -> None:
    lab_kernels.kernel(KERNEL)
    module = lab_kernels.module(KERNEL, "rtproof_deep_idle")
    guest = ("--target", "qemu", "--target-option", f"kernel={KERNEL}", "--target-option", f"files=/deep.ko={module}")
    asked = ("--knobs", f"idle-states,{NOTHING}", "--run-length", "1s", "--warmup", "100ms", "--budget", "10h")
    folder = tmp_path / "tuning"
    setup = ("--target-option", "setup=insmod /deep.ko")
    assert main(["tune", *guest, *setup, *asked, "--seed", "1", "-o", str(folder)]) == 0
    (ended,) = found
    assert (ended.kept, ended.lost, ended.unfinished) == (("idle-states",), 0, "")
    intervals = {each.name: each.effects[ended.metric].interval(each.alpha) for each in ended.knobs}
    assert intervals["idle-states"][1] < 0
    assert intervals[NOTHING][0] < 0 < intervals[NOTHING][1]
    assert (folder / "tuning.json").exists()
