# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import msgspec
import pytest

from rtproof.core import toml
from rtproof.core.errors import UserError


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    number: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    inner: tuple[Inner, ...] = ()


def test_a_file_becomes_an_object(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("[[inner]]\nnumber = 7\n")
    assert toml.read_toml(file, Outer) == Outer((Inner(7),))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[[inner]]\ncolour = 1", "a file: there is no key 'colour' in inner[0]"),
        (b"colour = 1", "a file: there is no key 'colour'"),
        (b"[[inner]]\nnumber = 'x'", "a file: inner[0].number: Expected `int`, got `str`"),
        (b"inner = 1", "a file: inner: Expected `array`, got `int`"),
        (b"inner = ", "a file is not TOML: Invalid value (at end of document)"),
        (b"\xff", "a file is not TOML: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ],
)
def test_what_is_wrong_is_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        toml.parse_toml(content, Outer, "a file")
    assert str(caught.value) == sentence
