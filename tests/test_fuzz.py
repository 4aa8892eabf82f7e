# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of ``make fuzz``: each target reads its corpus and some damaged inputs, and finds planted defects."""

import os
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import cast

import damaged_outputs
import pytest
from fuzzing import worker
from fuzzing.record_mutations import chunks_of, mutated_record, record_of
from fuzzing.targets import DATA, TARGETS, Target, kept_inputs

from rtproof import importers
from rtproof.core import plugins
from rtproof.core.errors import UserError

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


def test_the_same_seed_makes_the_same_inputs() -> None:
    target = next(each for each in TARGETS if each.name == "record")
    some = [[content for _, content, _ in islice(worker.inputs(target, seed), 30)] for seed in (7, 7, 8)]
    assert some[0] == some[1]
    assert some[0] != some[2]


def test_damaged_records_have_right_checksums_behind_which_something_is_else() -> None:
    record = (DATA / "golden" / "x86_64.rtrec").read_bytes()
    assert record_of(chunks_of(record)) == record
    made = [mutated_record(record, record, seed) for seed in range(100)]
    framed = [content for content in made if record_of(chunks_of(content)) == content]
    assert len(framed) >= 60
    assert sum(content != record for content in framed) >= 50


PLANT = """
import os
import fuzzing.worker
from fuzzing.targets import TARGETS
from rtproof.record import encoding
fuzzing.worker.MOST_S = 0.5
seeds = next(each for each in TARGETS if each.name == "packed").seeds()
whole = encoding.leb128_decode
def planted(data, count):
    what = seeds.index(data) if data in seeds else 0
    if what == 1:
        raise KeyError(len(data))
    if what == 2:
        bytearray(2 << 30)
    while what == 3:
        pass
    if what == 4:
        os.abort()
    return whole(data, count)
encoding.leb128_decode = planted
"""


def test_planted_defects_are_found_saved_and_repeated(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(PLANT)
    paths = (tmp_path, ROOT / "src", ROOT / "bench")
    planted = os.environ | {"PYTHONPATH": ":".join(map(str, paths))}
    command = [sys.executable, str(ROOT / "bench" / "fuzz.py")]
    words = ["--minutes", "0.1", "--jobs", "1", "--seed", "5", "--findings", str(tmp_path / "found"), "packed"]
    done = subprocess.run([*command, *words], check=False, env=planted, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    for cause in ("KeyError: #", "more than 1024 MiB", "more than 0.5 s", "ended with SIGABRT"):
        assert cause in done.stdout
    (error,) = [path for path in (tmp_path / "found").glob("*.txt") if "KeyError" in path.read_text()]
    assert f"--repeat {error.with_suffix('')}" in error.read_text()
    again = [*command, "--repeat", str(error.with_suffix(""))]
    assert subprocess.run(again, check=False, env=planted, capture_output=True, timeout=60).returncode == 1
    sound = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    assert subprocess.run(again, check=False, env=sound, capture_output=True, timeout=60).returncode == 0


@pytest.mark.parametrize("answer", ["two readings", "two sentences"])
def test_an_answer_that_changes_or_is_no_sentence_is_a_finding(answer: str, tmp_path: Path) -> None:
    def read(content: bytes, folder: Path) -> bytes:
        if answer == "two sentences":
            raise UserError("one\ntwo")
        told.append(b"x")
        return b"".join(told)

    told: list[bytes] = []
    target = Target("changing", lambda: [b""], lambda content, other, seed: content, read)
    with pytest.raises(worker.FindingError, match=r"two readings of one input differ|not one sentence"):
        worker.check(target, b"", tmp_path / "reading", twice=True)


# Damaged outputs of each tool, which are read by their reader alone.


class OddReader:
    """A reader with a defect: it fails with an exception of its own for some texts."""

    TOOL = "an odd tool"

    @staticmethod
    def looks_like(text: str) -> bool:
        return "odd" in text

    @staticmethod
    def read(text: str) -> str:
        if "9" in text:
            raise KeyError(text[:1])
        if "1" not in text:
            raise UserError("there is no number")
        return text


def test_a_defect_of_a_reader_is_counted_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    reader = cast("ModuleType", OddReader)
    found = damaged_outputs.read_damaged(reader, [b"odd 1\n", b"odd 12 odd\n"], 2_000, random.Random(1))
    out, err = capsys.readouterr()
    assert found > 0
    kept = sorted((tmp_path / "build" / "fuzz").iterdir())
    assert 1 <= len(kept) <= found
    assert all(b"9" in each.read_bytes() for each in kept)
    assert "an odd tool: 2 seeds; " in out
    assert all(f" {outcome}" in out for outcome in ("read", "refused", "not known as this tool's", "KeyError("))
    assert "build/fuzz/histogram-anoddtool-1" in err


def test_every_reader_has_a_seed_and_reads_a_few_damaged_ones(capsys: pytest.CaptureFixture[str]) -> None:
    readers = plugins.load_plugins(importers)
    seeds = damaged_outputs.seeds_of(readers)
    assert [module.TOOL for module in readers if not seeds[module.TOOL]] == []
    found = [damaged_outputs.read_damaged(each, seeds[each.TOOL], 20, random.Random(2)) for each in readers]
    assert not any(found), capsys.readouterr()
