# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of ``make fuzz``: each target reads its corpus and some damaged inputs, and finds planted defects."""

import random
from itertools import islice
from pathlib import Path

import damaged_outputs
import pytest
from fuzzing import worker
from fuzzing.targets import TARGETS, Target, kept_inputs

from rtproof import importers
from rtproof.core import plugins

ROOT = Path(__file__).parent.parent
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


# Damaged outputs of each tool, which are read by their reader alone.


def test_every_reader_has_a_seed_and_reads_a_few_damaged_ones(capsys: pytest.CaptureFixture[str]) -> None:
    readers = plugins.load_plugins(importers)
    seeds = damaged_outputs.seeds_of(readers)
    assert [module.TOOL for module in readers if not seeds[module.TOOL]] == []
    found = [damaged_outputs.read_damaged(each, seeds[each.TOOL], 20, random.Random(2)) for each in readers]
    assert not any(found), capsys.readouterr()
