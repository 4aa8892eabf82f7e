# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of ``make fuzz``: each target reads its corpus and some damaged inputs, and finds planted defects."""

from itertools import islice
from pathlib import Path

import pytest
from fuzzing import worker
from fuzzing.targets import TARGETS, Target, kept_inputs

DAMAGED = 4
"""Damaged inputs of each target."""
KEPT = {name: (target, content) for target in TARGETS for name, content in kept_inputs(target.name).items()}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_each_target_reads_a_whole_input_and_damaged_ones(target: Target, tmp_path: Path) -> None:
    own = len(target.corpus())
    kinds = []
    for number, content, _ in islice(worker.inputs(target, 1), own + DAMAGED):
        if number in (0, *range(own, own + DAMAGED)):
            kinds.append(worker.check(target, content, tmp_path / "reading", twice=False))
    assert len(kinds) == DAMAGED + 1
    assert kinds[0].startswith("result ")


@pytest.mark.parametrize("name", KEPT)
def test_what_once_was_a_finding_is_none(name: str, tmp_path: Path) -> None:
    target, content = KEPT[name]
    assert worker.check(target, content, tmp_path / "reading", twice=True)
