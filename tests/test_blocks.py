# SPDX-License-Identifier: Apache-2.0
"""Samples read again, also in another process, and never from a file that has changed."""

import multiprocessing
from pathlib import Path

import pytest
import record_cases as cases

from rtproof.core.errors import RecordError
from rtproof.record.contents import Block, ChunkRef
from rtproof.record.reading import BlockReader, open_record


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, tuple[ChunkRef, ...]]:
    path = tmp_path / "run.rtrec"
    cases.write_small(path)
    return path, open_record(path).chunk_refs


def read(reader: BlockReader, refs: tuple[ChunkRef, ...]) -> list[Block]:
    return list(reader(refs))


def test_in_the_order_of_the_refs(written: tuple[Path, tuple[ChunkRef, ...]]) -> None:
    path, refs = written
    found = read(BlockReader(str(path)), refs[::-1])
    assert [block.first_index for block in found] == [ref.first_index for ref in refs[::-1]]


def test_in_another_process(written: tuple[Path, tuple[ChunkRef, ...]]) -> None:
    path, refs = written
    reader = BlockReader(str(path))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(read, (reader, refs))
    here = read(reader, refs)
    assert [block.values.tolist() for block in there] == [block.values.tolist() for block in here]


@pytest.mark.parametrize("change", ["flip", "cut", "gone"])
def test_a_file_that_changed_gives_no_samples(change: str, written: tuple[Path, tuple[ChunkRef, ...]]) -> None:
    path, refs = written
    content = bytearray(path.read_bytes())
    path.unlink()
    content[refs[1].offset + 30] ^= 1
    if change == "flip":
        path.write_bytes(content)
    elif change == "cut":
        path.write_bytes(content[: refs[1].offset + 30])
    reader = BlockReader(str(path))
    with pytest.raises(RecordError, match="cannot read" if change == "gone" else "has changed since it was opened"):
        read(reader, refs[1:2])
