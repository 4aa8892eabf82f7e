# SPDX-License-Identifier: Apache-2.0
"""The writer where the reader's tests do not use it: it never replaces a file and refuses what does not fit."""

from pathlib import Path

import numpy as np
import pytest
import record_cases as cases

from rtproof.record.chunks import CHUNK_HEADER
from rtproof.record.contents import Seconds
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter


def test_never_over_another_file(tmp_path: Path) -> None:
    path = tmp_path / "run.rtrec"
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        RecordWriter(path)
    assert path.read_bytes() == b"precious"


def test_chunks_are_numbered_and_aligned(tmp_path: Path) -> None:
    path = tmp_path / "run.rtrec"
    cases.write_small(path)
    chunks = list(cases.chunks(path))
    assert [CHUNK_HEADER.unpack_from(chunk)[4] for chunk in chunks] == list(range(len(chunks)))
    assert {len(chunk) % 4 for chunk in chunks} == {0}


def test_what_is_flushed_can_be_read_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "run.rtrec"
    with RecordWriter(path) as writer:
        writer.begin(cases.BEGIN)
        writer.flush()
        assert open_record(path).begin == cases.BEGIN


def test_seconds_must_follow_each_other(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "run.rtrec") as writer, pytest.raises(ValueError, match="consecutive"):
        writer.seconds(0, Seconds(*(np.array([1, 3], dtype=np.int64) for _ in range(4))))
